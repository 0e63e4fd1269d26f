// Where a workload differs from its desired state: blockers, drift, and orphans.
import { useMemo } from 'react';
import { BlockersCard } from '../changes/Blockers';
import { isUnderWay } from '../changes/words';
import { orphanColumns } from '../orphans/OrphanTable';
import { Ago, Card, DataTable } from '../ui/parts';
import type { Workload } from '../lifecycle/workload';
import { Clearings } from './Clearings';
import { nameIn } from './clearing';

/** The cards; nothing while there are no blockers, drift or orphans. */
export function Troubles({ workload, refresh }: { workload: Workload; refresh: () => void }) {
  const columns = useMemo(() => orphanColumns(refresh, false), [refresh]);
  const stuck = workload.blockers.filter((each) => !isUnderWay(each.code)); // progress has its own card
  const name = (id: string | null) => {
    const member = workload.members.edges.find((edge) => edge.node.id === id)?.node;
    return member === undefined ? 'the whole workload' : `${member.componentKey} ${member.index}`;
  };
  return (
    <>
      <BlockersCard
        blockers={stuck}
        title="Blockers"
        nameOf={nameIn(workload)}
        verbs={(blocker) => <Clearings blocker={blocker} workload={workload} refresh={refresh} />}
      />
      {workload.drift.length > 0 && (
        <Card
          title="Drift"
          label="Drift"
          pad={false}
          aside={
            workload.observedAt !== null && (
              <span className="small faint">
                observed by the adapter <Ago at={workload.observedAt} />
              </span>
            )
          }
        >
          <DataTable
            label="Drift"
            rows={workload.drift.map((row, at) => ({ ...row, at }))}
            keyOf={(row) => String(row.at)}
            columns={[
              { head: 'Part', cell: (row) => <span className="strong">{name(row.memberId)}</span> },
              {
                head: 'What is different',
                cell: (row) => (
                  <span className="said wrap-any" style={{ display: 'inline-block' }}>
                    {row.message}
                  </span>
                ),
              },
              { head: 'Kind', cell: (row) => <code>{row.code}</code> },
            ]}
          />
        </Card>
      )}
      {workload.orphans.length > 0 && (
        <Card title="Orphans" label="Orphans" pad={false}>
          <DataTable label="Orphans" rows={workload.orphans} keyOf={(row) => row.id} columns={columns} />
        </Card>
      )}
    </>
  );
}
