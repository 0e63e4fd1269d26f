// Tearing a workload down.
import { useSubmission } from '../api/hooks';
import { DecommissionInstanceDocument } from '../generated/graphql';
import { ReasonDialog } from '../ui/ReasonDialog';
import type { Workload } from './WorkloadPage';

/** Asks once more, with a reason. */
export function DecommissionDialog({ workload, opened, onClose, onDone }: {
  workload: Workload; opened: boolean; onClose: () => void; onDone: () => void;
}) {
  const { submit, problem, busy, reset } = useSubmission(DecommissionInstanceDocument);
  const close = () => {
    reset();
    onClose();
  };
  const act = async (reason: string) => {
    if ((await submit({ instanceId: workload.id, reason })) === undefined) return;
    onDone();
    close();
  };
  return (
    <ReasonDialog
      opened={opened} title={`Decommission ${workload.name}`} act="Decommission" busy={busy} problem={problem}
      confirm={`Tear ${workload.name} down for good`} onClose={close} onAct={(reason) => void act(reason)}
    >
      Every member is stopped and removed, and with them what runs and what is stored on them. It is done when the nodes have proved that nothing is left. The allocations stay yours.
    </ReasonDialog>
  );
}
