// All nodes at once: capacity, nodes that take no members, and operations of every tenant that do not go on.
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import { useRead, useThrottled } from '../api/hooks';
import { useWhile } from '../api/useWhile';
import { moneyWord } from '../changes/words';
import { FleetDocument } from '../generated/graphql';
import type { FleetQuery } from '../generated/graphql';
import { operationName } from '../lib/format';
import { ProblemNotice } from '../ui/Problem';
import { Status } from '../ui/Status';
import { Ago, Card, DataTable, Loading } from '../ui/parts';
import { whyNot } from './standing';

type Fleet = FleetQuery['fleet'];
type Capacity = Fleet['capacity'][number];
type Troubled = Fleet['troubled'][number];
type Stuck = Fleet['stuck'][number];

/** The cards above the list of nodes; healthy states take no space. */
export function FleetCards() {
  const read = useRead(
    FleetDocument,
    useMemo(() => ({}), []),
  );
  useWhile(true, useThrottled(read.refresh));
  if (read.data === undefined)
    return read.problem === undefined ? <Loading lines={2} /> : <ProblemNotice problem={read.problem} />;
  const { capacity, troubled, stuck } = read.data.fleet;
  return (
    <>
      <Card title="Capacity" pad={false}>
        <DataTable<Capacity>
          label="Capacity"
          columns={capacityColumns}
          rows={capacity}
          keyOf={(row) => `${row.region} ${row.sku}`}
        />
      </Card>
      {troubled.length > 0 && (
        <Card title="Take no new members" pad={false}>
          <DataTable<Troubled>
            label="Nodes that take no new members"
            columns={troubledColumns}
            rows={troubled}
            keyOf={(row) => row.id}
          />
        </Card>
      )}
      {stuck.length > 0 && (
        <Card title="Operations that make no progress" pad={false}>
          <DataTable<Stuck>
            label="Operations that make no progress"
            columns={stuckColumns}
            rows={stuck}
            keyOf={(row) => row.id}
          />
        </Card>
      )}
    </>
  );
}

const capacityColumns = [
  { head: 'Region', cell: (row: Capacity) => row.region || '—' },
  { head: 'SKU', cell: (row: Capacity) => row.sku || '—' },
  {
    head: 'Nodes',
    cell: (row: Capacity) => (
      <span className="num">
        {row.taking} of {row.nodes} take members
        <span className="sub">
          {row.online} online, {row.freeNodes} free
        </span>
      </span>
    ),
  },
  {
    head: 'GPUs',
    cell: (row: Capacity) => (
      <span className="num">
        {row.gpusRented} of {row.gpus} rented<span className="sub">{row.gpusFree} could be rented now</span>
      </span>
    ),
  },
];

const troubledColumns = [
  {
    head: 'Node',
    cell: (row: Troubled) => (
      <Link to="/nodes/$id" params={{ id: row.id }}>
        {row.name}
      </Link>
    ),
  },
  { head: 'Status', cell: (row: Troubled) => <Status state={row.status} /> },
  { head: 'Why', cell: (row: Troubled) => <span className="wrap-any">{whyNot(row) ?? ''}</span> },
];

const stuckColumns = [
  {
    head: 'Operation',
    cell: (row: Stuck) => (
      <Link to="/operations/$id" params={{ id: row.id }}>
        {operationName(row.kind)}
      </Link>
    ),
  },
  { head: 'State', cell: (row: Stuck) => <Status state={row.state} operation /> },
  { head: 'Began', cell: (row: Stuck) => <Ago at={row.createdAt} /> },
  { head: 'Cost so far', cell: (row: Stuck) => moneyWord(row.costSoFar) },
  {
    head: 'Waits for',
    cell: (row: Stuck) => <span className="wrap-any">{row.blockers[0]?.message ?? row.message}</span>,
  },
];
