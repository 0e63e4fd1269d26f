// The service account as which a workload's app may act, and its change.
import { Button } from '@mantine/core';
import { useState } from 'react';
import { tell } from '../api/hooks';
import { useSession } from '../api/session';
import { AskDialog } from '../changes/AskDialog';
import { SetOperatorAccountDocument } from '../generated/graphql';
import { OperatorSelect, useOperatorAccounts } from '../lifecycle/OperatorSelect';
import { instanceKey } from '../lifecycle/rules';
import type { Workload } from '../lifecycle/workload';
import { Card, Fact } from '../ui/parts';

/** The card; nothing once the workload is torn down. */
export function OperatorCard({ workload, refresh }: { workload: Workload; refresh: () => void }) {
  const { can } = useSession();
  const [asked, setAsked] = useState(false);
  const accounts = useOperatorAccounts(workload.projectId);
  if (workload.releasedAt !== null) return null;
  const chosen = workload.operatorServiceAccountId;
  const name = accounts.find((each) => each.value === chosen)?.label ?? chosen;
  return (
    <Card
      title="Operator account"
      aside={
        can(instanceKey(workload.permissionFamily, 'upgrade')) && (
          <Button size="compact-xs" variant="subtle" onClick={() => setAsked(true)}>
            Choose
          </Button>
        )
      }
    >
      <dl className="facts" data-operator={chosen ?? ''}>
        <Fact term="The app acts as">{name ?? 'no account: in operations only'}</Fact>
      </dl>
      {asked && <OperatorDialog workload={workload} onClose={() => setAsked(false)} onDone={refresh} />}
    </Card>
  );
}

/** The dialog that chooses an account, or no account. */
function OperatorDialog({
  workload,
  onClose,
  onDone,
}: {
  workload: Workload;
  onClose: () => void;
  onDone: () => void;
}) {
  const [account, setAccount] = useState(workload.operatorServiceAccountId ?? '');
  return (
    <AskDialog
      title="Choose the operator account"
      act="Choose"
      send={(reason) =>
        tell(SetOperatorAccountDocument, {
          input: { instanceId: workload.id, serviceAccountId: account === '' ? null : account, reason },
        })
      }
      onClose={onClose}
      onDone={onDone}
    >
      <div className="stack">
        <p>You need each key of the account. What the app does as the previous one ends at once.</p>
        <OperatorSelect projectId={workload.projectId} value={account} onChange={setAccount} />
      </div>
    </AskDialog>
  );
}
