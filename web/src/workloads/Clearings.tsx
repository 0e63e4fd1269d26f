// The buttons of a blocker: each clears it, or names who can.
import { Button } from '@mantine/core';
import { useState } from 'react';
import { useSession } from '../api/session';
import type { BlockerBitsFragment } from '../generated/graphql';
import { DecommissionDialog } from '../lifecycle/InstanceDialogs';
import { MemberDialog } from '../lifecycle/MemberDialogs';
import type { Workload } from '../lifecycle/workload';
import { CancelDialog, RetryDialog } from '../operations/CancelRetry';
import { DeniedButton } from '../ui/Denied';
import { clearingsOf } from './clearing';
import type { Clearing } from './clearing';
import { StopDialog } from './StopDialog';

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
        <Dialog chosen={chosen} workload={workload} onClose={() => setChosen(undefined)} onDone={refresh} />
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
      return (
        <StopDialog
          label={chosen.label}
          instanceId={props.workload.id}
          action={chosen.action}
          input={chosen.input}
          onClose={props.onClose}
          onDone={props.onDone}
        />
      );
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
