// The machines that provide the capacity, for operators.
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import { useThrottled } from '../api/hooks';
import { useRows } from '../api/pages';
import { useWhile } from '../api/useWhile';
import { NodesDocument } from '../generated/graphql';
import type { NodesQuery } from '../generated/graphql';
import { bytes } from '../lib/format';
import { headOf } from '../lib/places';
import { RowsCard } from '../ui/Rows';
import { Status } from '../ui/Status';
import { Ago, Empty, PageHead } from '../ui/parts';
import { FleetCards } from './FleetCards';
import { Gpus, Walls } from './Walls';

type Row = NodesQuery['nodes']['edges'][number]['node'];
const pick = (data: NodesQuery) => data.nodes;

/** The list of nodes, read again every few seconds because nodes have no events. */
export function NodesPage() {
  const list = useRows(
    NodesDocument,
    useMemo(() => ({}), []),
    pick,
  );
  useWhile(true, useThrottled(list.refresh));
  return (
    <div className="page">
      <PageHead {...headOf('/nodes')} />
      <FleetCards />
      <RowsCard<Row>
        list={list}
        label="Nodes"
        columns={columns}
        empty={
          <Empty icon="nodes" title="No nodes enrolled">
            Create an enrolment with <code>createNodeEnrolment</code> and start a node agent with it.
          </Empty>
        }
      />
    </div>
  );
}

const columns = [
  {
    head: 'Name',
    cell: (row: Row) => (
      <>
        <Link className="strong" to="/nodes/$id" params={{ id: row.id }}>
          {row.name}
        </Link>
        <span className="sub mono">{row.address}</span>
      </>
    ),
  },
  { head: 'Status', cell: (row: Row) => <Status state={row.status} /> },
  { head: 'GPUs', cell: (row: Row) => <Gpus row={row} /> },
  {
    head: 'CPU and memory',
    cell: (row: Row) => (
      <span className="num">
        {row.cpus} cores<span className="sub">{bytes(row.memoryMiB * 1024 * 1024)}</span>
      </span>
    ),
  },
  {
    head: 'Where',
    cell: (row: Row) => (
      <span>
        {row.region === '' ? '—' : row.region}
        <span className="sub">{row.sku}</span>
      </span>
    ),
  },
  { head: 'Isolation', cell: (row: Row) => <Walls row={row} /> },
  {
    head: 'Agent',
    cell: (row: Row) => (
      <span>
        {row.agentVersion}
        <span className="sub">
          last seen <Ago at={row.lastSeenAt} />
        </span>
      </span>
    ),
  },
];
