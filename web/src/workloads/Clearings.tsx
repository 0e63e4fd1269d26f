// The buttons of a blocker: each does what clears it, or tells whom to ask.
import { Button } from '@mantine/core';
import { useState } from 'react';
import { useSender } from '../api/hooks';
import { useSession } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import { InvokeActionDocument } from '../generated/graphql';
import type { BlockerBitsFragment } from '../generated/graphql';
import { DecommissionDialog } from '../lifecycle/InstanceDialogs';
import { MemberDialog } from '../lifecycle/MemberDialogs';
import type { Workload } from '../lifecycle/workload';
import { CancelDialog, RetryDialog } from '../operations/CancelRetry';
import { DeniedButton } from '../ui/Denied';
import { clearingsOf } from './clearing';
import type { Clearing } from './clearing';

interface Props {
  workload: Workload;
  refresh: () => void;
}

/** The buttons; nothing where only waiting clears it. */
export function Clearings({ blocker, workload, refresh }: Props & { blocker: BlockerBitsFragment }) {
  const { can } = useSession();
  const [chosen, setChosen] = useState<Clearing>();
  const all = clearingsOf(blocker, workload);
  if (all.length === 0 && chosen === undefined) return null;
  return (
    <div className="row clearings">
      {all.map((each) =>
        can(each.permissionKey) ? (
          <Button key={each.label} size="xs" variant="default" onClick={() => setChosen(each)}>
            {each.label}
          </Button>
        ) : (
          <DeniedButton
            key={each.label}
            label={each.label}
            permissionKey={each.permissionKey}
            objectId={workload.id}
            size="xs"
          />
        ),
      )}
      {chosen !== undefined && (
        <Dialog
          chosen={chosen}
          workload={workload}
          onClose={() => setChosen(undefined)}
          onDone={() => {
            setChosen(undefined);
            refresh();
          }}
        />
      )}
    </div>
  );
}

interface DialogProps {
  workload: Workload;
  onClose: () => void;
  onDone: () => void;
}

function Dialog({ chosen, ...props }: DialogProps & { chosen: Clearing }) {
  switch (chosen.does) {
    case 'stop-work':
      return <StopDialog chosen={chosen} {...props} />;
    case 'cancel':
      return <CancelDialog detail={chosen.operation} {...props} />;
    case 'retry':
      return <RetryDialog detail={chosen.operation} {...props} />;
    case 'decommission':
      return <DecommissionDialog {...props} />;
    default:
      return (
        <MemberDialog
          act={chosen.does}
          member={chosen.member}
          instanceId={props.workload.id}
          force={chosen.does === 'remove'}
          onClose={props.onClose}
          onDone={props.onDone}
        />
      );
  }
}

function StopDialog({ chosen, workload, onClose, onDone }: DialogProps & { chosen: Clearing & { does: 'stop-work' } }) {
  const send = useSender(InvokeActionDocument);
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: chosen.label,
        act: chosen.label,
        dismiss: 'Let it go on',
        danger: true,
        fields: [],
        reasonNeeded: false,
        intro: 'The app stops it. What it has not stored is lost; what waits for it goes on at once.',
        send: ({ reason }) =>
          send({ instanceId: workload.id, projectId: null, action: chosen.action, input: chosen.input, reason }),
        form: () => null,
      }}
    />
  );
}
