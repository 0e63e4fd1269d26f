// The confirmation of an app's own action that stops a piece of work.
import { useSender } from '../api/hooks';
import { ChangeDialog } from '../changes/ChangeDialog';
import { InvokeActionDocument } from '../generated/graphql';

/** The dialog, open as long as it is mounted. */
export function StopDialog({
  label,
  instanceId,
  action,
  input,
  onClose,
  onDone,
}: {
  label: string;
  instanceId: string;
  action: string;
  input: Readonly<Record<string, unknown>>;
  onClose: () => void;
  onDone: () => void;
}) {
  const send = useSender(InvokeActionDocument);
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: label,
        act: label,
        dismiss: 'Let it go on',
        danger: true,
        fields: [],
        reasonNeeded: false,
        intro: 'The app stops it. What it has not stored is lost; what waits for it continues at once.',
        send: ({ reason }) => send({ instanceId, projectId: null, action, input, reason }),
        form: () => null,
      }}
    />
  );
}
