// How a workload is repaired when members of it are lost: its policy, and the switch between people and the platform.
import { Button } from '@mantine/core';
import { useState } from 'react';
import { tell } from '../api/hooks';
import { useSession } from '../api/session';
import { AskDialog } from '../changes/AskDialog';
import { SetRepairPolicyDocument } from '../generated/graphql';
import { instanceKey } from '../lifecycle/rules';
import type { Workload } from '../lifecycle/workload';
import { Notice } from '../ui/Problem';
import { Ago, Card, Fact } from '../ui/parts';

/** The card; nothing once the workload is torn down. */
export function RepairCard({ workload, refresh }: { workload: Workload; refresh: () => void }) {
  const { can } = useSession();
  const [asked, setAsked] = useState(false);
  if (workload.releasedAt !== null) return null;
  const { repair } = workload;
  const automatic = repair.mode === 'AUTOMATIC';
  const may = workload.status === 'RUNNING' && can(instanceKey(workload.permissionFamily, 'upgrade'));
  return (
    <Card
      title="Repair"
      aside={
        may && (
          <Button size="compact-xs" variant="subtle" onClick={() => setAsked(true)}>
            {automatic ? 'Leave it to people' : 'Let the platform repair'}
          </Button>
        )
      }
    >
      <div className="stack" data-repair={repair.mode}>
        {workload.repairStopped !== '' && (
          <Notice tone="warn" icon="warn">
            {workload.repairStopped}
          </Notice>
        )}
        <dl className="facts">
          <Fact term="Repaired by">{automatic ? 'the platform' : 'people'}</Fact>
          {automatic && (
            <Fact term="Budget">
              {repair.budget} repairs an hour, {repair.backOffSeconds} s apart, doubled after each that does not help
            </Fact>
          )}
          {repair.graceSeconds !== null && (
            <Fact term="Given up">after {repair.graceSeconds} s with too few members</Fact>
          )}
          {workload.unservedAt !== null && (
            <Fact term="Too few members">
              <Ago at={workload.unservedAt} />
            </Fact>
          )}
        </dl>
      </div>
      {asked && (
        <RepairDialog workload={workload} automatic={!automatic} onClose={() => setAsked(false)} onDone={refresh} />
      )}
    </Card>
  );
}

/** The dialog that sets the mode and keeps the rest of the policy. */
function RepairDialog({
  workload,
  automatic,
  onClose,
  onDone,
}: {
  workload: Workload;
  automatic: boolean;
  onClose: () => void;
  onDone: () => void;
}) {
  const { budget, backOffSeconds, graceSeconds, hourlyLimitMicros } = workload.repair;
  const send = (reason: string | null) =>
    tell(SetRepairPolicyDocument, {
      input: {
        instanceId: workload.id,
        mode: automatic ? 'AUTOMATIC' : 'MANUAL',
        budget,
        backOffSeconds,
        graceSeconds,
        hourlyLimitMicros,
        reason,
      },
    });
  return (
    <AskDialog
      title={automatic ? 'Let the platform repair' : 'Leave repair to people'}
      act={automatic ? 'Repair automatically' : 'Repair by hand'}
      send={send}
      onClose={onClose}
      onDone={onDone}
    >
      {automatic
        ? 'A failed member is recovered on its node. After two recoveries that do not help, it is replaced in capacity like its own, within quota and policy.'
        : 'Failed members stay as they are until a person acts. Members that a restart of their node ended are still brought back.'}
    </AskDialog>
  );
}
