// Releasing capacity.
import { allocationName } from '../lib/capacity';
import { useSubmission } from '../api/hooks';
import { ReleaseAllocationDocument } from '../generated/graphql';
import type { AllocationBitsFragment } from '../generated/graphql';
import { ReasonDialog } from '../ui/ReasonDialog';

/** The dialog for one allocation; closed while `allocation` is undefined. */
export function ReleaseDialog({
  allocation,
  onClose,
  onDone,
}: {
  allocation: AllocationBitsFragment | undefined;
  onClose: () => void;
  onDone: () => void;
}) {
  const { submit, problem, busy, reset } = useSubmission(ReleaseAllocationDocument);
  const close = () => {
    reset();
    onClose();
  };
  const release = async (reason: string) => {
    if (allocation === undefined || (await submit({ allocationId: allocation.id, reason })) === undefined) return;
    onDone();
    close();
  };
  const user = allocation?.instance ?? null;
  return (
    <ReasonDialog
      opened={allocation !== undefined}
      title={`Release ${allocation === undefined ? '' : allocationName(allocation)}`}
      act="Release"
      busy={busy}
      problem={problem}
      confirm={user === null ? 'Release this capacity' : `Stop ${user.name} and release its capacity`}
      onClose={close}
      onAct={(reason) => void release(reason)}
    >
      {user === null ? (
        'The allocation is not in use. The release is complete once the node has proved that nothing is left on it.'
      ) : (
        <>
          <b>{user.name}</b> uses this allocation. It is stopped first, and the work that runs on it ends. The release
          is complete once the node has proved that nothing is left.
        </>
      )}
    </ReasonDialog>
  );
}
