// One action with a reason, in the dialog of every change.
import type { ReactNode } from 'react';
import type { Answer } from '../api/hooks';
import { ChangeDialog } from './ChangeDialog';

/** The dialog of a change that needs only a reason; open as long as it is mounted. */
export function AskDialog({
  title,
  act,
  danger = false,
  reasonNeeded = false,
  children,
  send,
  onClose,
  onDone,
}: {
  title: string;
  act: string;
  danger?: boolean;
  reasonNeeded?: boolean;
  children: ReactNode;
  send: (reason: string | null) => Promise<Answer<unknown>>;
  onClose: () => void;
  onDone: () => void;
}) {
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title,
        act,
        danger,
        fields: [],
        reasonNeeded,
        intro: children,
        send: ({ reason }) => send(reason),
        form: () => null,
      }}
    />
  );
}
