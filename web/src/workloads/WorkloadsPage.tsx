// The project's workloads.
import { Button, SegmentedControl, TextInput } from '@mantine/core';
import { Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useMemo, useState } from 'react';
import { useSettled, useThrottled } from '../api/hooks';
import { useRows } from '../api/pages';
import { useActivity, useProjectId } from '../api/session';
import { WorkloadsDocument } from '../generated/graphql';
import type { InstanceStatus, WorkloadsQuery } from '../generated/graphql';
import { operationName, words } from '../lib/format';
import { headOf } from '../lib/places';
import { Icon } from '../ui/Icons';
import { RowsCard } from '../ui/Rows';
import { HealthMark, Status, toneOf } from '../ui/Status';
import { Ago, Empty, Glyph, PageHead } from '../ui/parts';

type Row = WorkloadsQuery['instances']['edges'][number]['node'];
const pick = (data: WorkloadsQuery) => data.instances;

/** The statuses behind each choice of the filter; null for every one. */
const shows: Readonly<Record<string, InstanceStatus[] | null>> = {
  live: ['CREATED', 'STARTING', 'RUNNING', 'STOPPING', 'FAILED'],
  running: ['RUNNING'],
  failed: ['FAILED'],
  stopped: ['STOPPED'],
  all: null,
};

/** Reports whether a workload has ended: stopped or failed. */
export function isOver(status: InstanceStatus): boolean {
  return status === 'STOPPED' || status === 'FAILED';
}

/** The list with its filter, which is part of the address. */
export function WorkloadsPage({
  show = 'live',
  search = '',
}: {
  show: string | undefined;
  search: string | undefined;
}) {
  const projectId = useProjectId();
  const navigate = useNavigate();
  const [typed, setTyped] = useState(search);
  const settled = useSettled(typed.trim());
  useEffect(() => {
    if (settled !== search)
      void navigate({ to: '/workloads', search: { show, ...(settled === '' ? {} : { q: settled }) }, replace: true });
  }, [settled, search, show, navigate]);
  const variables = useMemo(
    () => ({
      projectId,
      filter: { statuses: shows[show] ?? null, search: settled === '' ? null : settled.slice(0, 100) },
    }),
    [projectId, show, settled],
  );
  const list = useRows(WorkloadsDocument, variables, pick);
  useActivity(useThrottled(list.refresh));
  const filtered = settled !== '' || show !== 'live';
  return (
    <div className="page">
      <PageHead
        {...headOf('/workloads')}
        actions={
          <Button
            renderRoot={(props) => <Link {...props} to="/catalog" />}
            leftSection={<Icon name="plus" size={15} />}
          >
            Launch an app
          </Button>
        }
      />
      <RowsCard<Row> list={list} label="Workloads" columns={columns} empty={<NoRows filtered={filtered} />}>
        <div className="card-head">
          <SegmentedControl
            size="xs"
            aria-label="Which workloads"
            value={show}
            onChange={(next) =>
              void navigate({
                to: '/workloads',
                search: { show: next, ...(settled === '' ? {} : { q: settled }) },
                replace: true,
              })
            }
            data={[
              { value: 'live', label: 'Current' },
              { value: 'running', label: 'Running' },
              { value: 'failed', label: 'Failed' },
              { value: 'stopped', label: 'Stopped' },
              { value: 'all', label: 'All' },
            ]}
          />
          <TextInput
            aria-label="Search by name"
            placeholder="Search by name"
            type="search"
            size="xs"
            maxLength={100}
            leftSection={<Icon name="search" size={14} />}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
          />
        </div>
      </RowsCard>
    </div>
  );
}

function NoRows({ filtered }: { filtered: boolean }) {
  if (filtered)
    return (
      <Empty icon="search" title="No workload matches">
        Change the filter to see others.
      </Empty>
    );
  return (
    <Empty
      icon="workloads"
      title="Nothing runs here yet"
      action={<Button renderRoot={(props) => <Link {...props} to="/catalog" />}>Open the catalog</Button>}
    >
      Launch an app from the catalog into capacity your project rents, and watch it start.
    </Empty>
  );
}

const columns = [
  {
    head: 'Name',
    cell: (row: Row) => (
      <span className="row" style={{ flexWrap: 'nowrap', gap: 11 }}>
        <Glyph slug={row.appSlug} size={30} />
        <span>
          <Link to="/workloads/$id" params={{ id: row.id }} className="strong">
            {row.name}
          </Link>
          {row.smoke && (
            <>
              {' '}
              <span className="tag">smoke test</span>
            </>
          )}
          {row.system && (
            <>
              {' '}
              <span className="tag">system app</span>
            </>
          )}
          <span className="sub">
            {row.appSlug} {row.appVersion}
          </span>
        </span>
      </span>
    ),
  },
  { head: 'Status', cell: (row: Row) => <Status state={row.status} /> },
  {
    head: 'Health',
    cell: (row: Row) => <HealthMark health={row.health} message={row.healthMessage} over={isOver(row.status)} />,
  },
  {
    head: 'Members',
    cell: (row: Row) => (
      <span className="num">
        {row.roles.map((role) => (
          <span key={role.componentKey} className="sub" style={{ color: 'inherit' }}>
            {role.displayName}: {role.current} of {role.desired}
          </span>
        ))}
      </span>
    ),
  },
  { head: 'Last operation', cell: (row: Row) => <LastOperation row={row} /> },
  { head: 'Created', cell: (row: Row) => <Ago at={row.createdAt} /> },
];

function LastOperation({ row }: { row: Row }) {
  const operation = row.lastOperation;
  if (operation === null) return <span className="faint">—</span>;
  const tone = toneOf(operation.state, true);
  const text =
    tone === 'busy'
      ? `${operationName(operation.kind)} ${operation.percent} %`
      : `${operationName(operation.kind)} ${words(operation.state).toLowerCase()}`;
  return (
    <Link to="/operations/$id" params={{ id: operation.id }} className="soft" title={operation.message}>
      {text}
    </Link>
  );
}
