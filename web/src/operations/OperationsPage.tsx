// The operations of the project and their outcomes.
import { SegmentedControl } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { useWhile } from '../api/useWhile';
import { useThrottled } from '../api/hooks';
import { useRows } from '../api/pages';
import { useActivity, useProjectId } from '../api/session';
import { OperationsDocument } from '../generated/graphql';
import type { OperationState, OperationsQuery } from '../generated/graphql';
import { between, operationName, words } from '../lib/format';
import { headOf } from '../lib/places';
import { RowsCard } from '../ui/Rows';
import { Status } from '../ui/Status';
import { Ago, Empty, PageHead } from '../ui/parts';
import { hasEnded } from './useOperation';

type Row = OperationsQuery['operations']['edges'][number]['node'];
const pick = (data: OperationsQuery) => data.operations;

const shows: Readonly<Record<string, OperationState[] | null>> = {
  all: null,
  open: ['PENDING', 'RUNNING', 'CANCELING', 'COMPENSATING'],
  failed: ['FAILED'],
};

/** The list with its filter. */
export function OperationsPage() {
  const projectId = useProjectId();
  const [show, setShow] = useState('all');
  const variables = useMemo(() => ({ projectId, states: shows[show] ?? null }), [projectId, show]);
  const list = useRows(OperationsDocument, variables, pick);
  const refresh = useThrottled(list.refresh);
  useActivity(refresh);
  useWhile(
    list.rows.some((row) => !hasEnded(row.state)),
    refresh,
  );
  return (
    <div className="page">
      <PageHead {...headOf('/operations')} />
      <RowsCard<Row>
        list={list}
        label="Operations"
        columns={columns}
        empty={<Empty icon="operations" title="No operations" />}
      >
        <div className="card-head">
          <SegmentedControl
            size="xs"
            aria-label="Which operations"
            value={show}
            onChange={setShow}
            data={[
              { value: 'all', label: 'All' },
              { value: 'open', label: 'In progress' },
              { value: 'failed', label: 'Failed' },
            ]}
          />
        </div>
      </RowsCard>
    </div>
  );
}

const columns = [
  {
    head: 'Operation',
    cell: (row: Row) => (
      <>
        <Link to="/operations/$id" params={{ id: row.id }} className="strong">
          {operationName(row.kind)}
        </Link>
        <span className="sub mono">{row.id}</span>
      </>
    ),
  },
  {
    head: 'State',
    cell: (row: Row) => (
      <Status
        state={row.state}
        operation
        title={row.error?.message ?? row.message}
        label={hasEnded(row.state) ? undefined : `${words(row.state)} ${row.percent} %`}
      />
    ),
  },
  {
    head: 'Workload',
    cell: (row: Row) =>
      row.instance === null ? (
        <span className="faint">—</span>
      ) : (
        <Link to="/workloads/$id" params={{ id: row.instance.id }}>
          {row.instance.name}
        </Link>
      ),
  },
  { head: 'Requested by', cell: (row: Row) => row.requester.name },
  { head: 'Requested', cell: (row: Row) => <Ago at={row.createdAt} /> },
  {
    head: 'Duration',
    cell: (row: Row) => (
      <span className="num">{row.endedAt === null ? '' : between(row.createdAt, row.endedAt, 0)}</span>
    ),
    right: true,
  },
];
