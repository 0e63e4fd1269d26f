// Who makes up a workload, by component.
import { Modal } from '@mantine/core';
import { useState } from 'react';
import { allocationName } from '../catalog/needs';
import { shorten } from '../lib/format';
import { Status, HealthMark } from '../ui/Status';
import { Card, DataTable, Json } from '../ui/parts';
import type { Column } from '../ui/parts';
import type { Workload } from './WorkloadPage';

type Member = Workload['members']['edges'][number]['node'];

/** Components with their counts, and the table of members. */
export function MembersCard({ workload }: { workload: Workload }) {
  const [shown, setShown] = useState<Member>();
  const members = workload.members.edges.map((edge) => edge.node);
  return (
    <Card title="Members" pad={false} label="Members">
      <div className="roles">
        {workload.roles.map((role) => (
          <div key={role.componentKey} data-role={role.componentKey}>
            <div className="small faint">{role.displayName}</div>
            <b>{role.current}</b> <span className="of">of {role.desired}</span>
            <div className="small soft">{role.summary}</div>
            <Pips desired={role.desired} current={role.current} healthy={role.healthy} />
          </div>
        ))}
      </div>
      {members.length > 0 && <DataTable label="Members" rows={members} keyOf={(row) => row.id} columns={columns(setShown)} />}
      {workload.members.pageInfo.hasNextPage && <p className="card-body small faint">Only the first {members.length} members are shown.</p>}
      <Modal opened={shown !== undefined} onClose={() => setShown(undefined)} title={<b>What the adapter says</b>} size="lg">
        {shown !== undefined && <Json value={shown.adapterDetail} label="Adapter detail" />}
      </Modal>
    </Card>
  );
}

/** One mark a member: healthy, there, or still missing; at most 32 are drawn. */
function Pips({ desired, current, healthy }: { desired: number; current: number; healthy: number }) {
  const total = Math.min(32, Math.max(desired, current));
  return <div className="pips" aria-hidden="true">{Array.from({ length: total }, (_, at) => <i key={at} className={at < healthy ? 'healthy' : at < current ? 'there' : ''} />)}</div>;
}

function columns(show: (member: Member) => void): Column<Member>[] {
  return [
    { head: 'Member', cell: (row) => <><span className="strong">{row.componentKey} {row.index}</span>{row.cordoned && <> <span className="tag">cordoned</span></>}<span className="sub mono" title={row.id}>{shorten(row.id, 10, 6)}</span></> },
    { head: 'Status', cell: (row) => <Status state={row.status} /> },
    { head: 'Health', cell: (row) => <HealthMark health={row.health} message={row.healthMessage} over={row.status === 'REMOVED' || row.status === 'FAILED'} /> },
    { head: 'Node', cell: (row) => row.node === null ? <span className="faint">—</span> : <span>{row.node.name}<span className="sub mono">{row.node.address}</span></span> },
    { head: 'Allocation', cell: (row) => row.allocation === null ? <span className="faint">—</span> : allocationName(row.allocation) },
    { head: '', right: true, cell: (row) => row.adapterDetail === null ? null : <button type="button" className="copy small" style={{ color: 'var(--accent)' }} onClick={() => show(row)}>Detail</button> },
  ];
}
