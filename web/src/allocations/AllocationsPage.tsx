// The capacity that the project rents.
import { Button, SegmentedControl } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { useThrottled } from '../api/hooks';
import { useRows } from '../api/pages';
import { useActivity, useProjectId, useSession } from '../api/session';
import { allocationName, shapeName } from '../lib/capacity';
import { AllocationsDocument } from '../generated/graphql';
import type { AllocationBitsFragment, AllocationStatus, AllocationsQuery } from '../generated/graphql';
import { bytes, plural, words } from '../lib/format';
import { amount, noPrice } from '../lib/money';
import { headOf } from '../lib/places';
import { Icon } from '../ui/Icons';
import { RowsCard } from '../ui/Rows';
import { Status } from '../ui/Status';
import { Ago, Empty, PageHead } from '../ui/parts';
import { ReleaseDialog } from './ReleaseDialog';
import { RequestDialog } from './RequestDialog';
import { useWhile } from '../api/useWhile';

const live: AllocationStatus[] = ['REQUESTED', 'READY', 'RELEASING'];
const pick = (data: AllocationsQuery) => data.allocations;

/** The list, with requesting and releasing. */
export function AllocationsPage() {
  const projectId = useProjectId();
  const { can } = useSession();
  const [show, setShow] = useState('held');
  const [asking, setAsking] = useState(false);
  const [leaving, setLeaving] = useState<AllocationBitsFragment>();
  const variables = useMemo(() => ({ projectId, statuses: show === 'held' ? live : null }), [projectId, show]);
  const list = useRows(AllocationsDocument, variables, pick);
  const refresh = useThrottled(list.refresh);
  useActivity(refresh);
  useWhile(
    list.rows.some((row) => row.status === 'REQUESTED' || row.status === 'RELEASING'),
    refresh,
  );
  const request = can('allocation.create') ? (
    <Button leftSection={<Icon name="plus" size={15} />} onClick={() => setAsking(true)}>
      Request capacity
    </Button>
  ) : undefined;
  return (
    <div className="page">
      <PageHead {...headOf('/allocations')} actions={request} />
      <RowsCard<AllocationBitsFragment>
        list={list}
        label="Allocations"
        columns={columns(can('allocation.release'), setLeaving)}
        empty={
          <Empty
            icon="allocations"
            title={show === 'held' ? 'No capacity allocated' : 'No allocations yet'}
            action={request}
          >
            Request bare metal or GPU slices to launch apps into.
          </Empty>
        }
      >
        <div className="card-head">
          <SegmentedControl
            size="xs"
            aria-label="Which allocations"
            value={show}
            onChange={setShow}
            data={[
              { value: 'held', label: 'Current' },
              { value: 'all', label: 'All' },
            ]}
          />
        </div>
      </RowsCard>
      <RequestDialog opened={asking} onClose={() => setAsking(false)} onDone={list.refresh} />
      <ReleaseDialog allocation={leaving} onClose={() => setLeaving(undefined)} onDone={list.refresh} />
    </div>
  );
}

function columns(mayRelease: boolean, release: (row: AllocationBitsFragment) => void) {
  return [
    {
      head: 'Name',
      cell: (row: AllocationBitsFragment) => (
        <>
          <span className="strong">{allocationName(row)}</span>
          <span className="sub mono">{row.id}</span>
        </>
      ),
    },
    { head: 'Status', cell: (row: AllocationBitsFragment) => <AllocationState row={row} /> },
    {
      head: 'Capacity',
      cell: (row: AllocationBitsFragment) => (
        <span>
          {shapeName(row.shape)}
          <span className="sub">
            {[
              plural(row.gpuCount, 'GPU'),
              row.sku,
              row.region,
              row.isolationClass === null ? '' : `at least ${words(row.isolationClass)}`,
            ]
              .filter(Boolean)
              .join(' · ')}
          </span>
          <Held row={row} />
        </span>
      ),
    },
    {
      head: 'Node',
      cell: (row: AllocationBitsFragment) =>
        row.node === null ? (
          <span className="faint">—</span>
        ) : (
          <span>
            {row.node.name}
            {row.node.gpusSimulated && <span className="sub">simulated GPUs</span>}
          </span>
        ),
    },
    {
      head: 'Used by',
      cell: (row: AllocationBitsFragment) =>
        row.instance === null ? (
          <span className="faint">Free</span>
        ) : (
          <Link to="/workloads/$id" params={{ id: row.instance.id }}>
            {row.instance.name}
          </Link>
        ),
    },
    {
      head: 'An hour',
      right: true,
      cell: (row: AllocationBitsFragment) =>
        row.hourlyCost === null ? (
          <span className="faint">{row.releasedAt === null ? noPrice : '—'}</span>
        ) : (
          <span data-hourly={row.hourlyCost.amount}>{amount(row.hourlyCost.amount, row.hourlyCost.currency)}</span>
        ),
    },
    { head: 'Since', cell: (row: AllocationBitsFragment) => <Ago at={row.createdAt} /> },
    {
      head: '',
      right: true,
      cell: (row: AllocationBitsFragment) =>
        mayRelease && row.status === 'READY' ? (
          <Button size="compact-xs" variant="default" onClick={() => release(row)}>
            Release<span className="hidden-visually"> {allocationName(row)}</span>
          </Button>
        ) : null,
    },
  ];
}

/** The devices that an allocation holds, and the part of the node that its members share. */
function Held({ row }: { row: AllocationBitsFragment }) {
  if (row.devices === null || row.devices.length === 0) return null;
  const share =
    row.memoryMiB === null || row.cpuMillis === null
      ? ''
      : `${row.cpuMillis / 1000} cores · ${bytes(row.memoryMiB * 1024 * 1024)}`;
  return (
    <details className="fold">
      <summary>Devices</summary>
      <ul>
        {row.devices.map((device) => (
          <li key={device.uuid} className="mono">
            {device.uuid}
          </li>
        ))}
      </ul>
      {share !== '' && <span className="sub">{share}</span>}
    </details>
  );
}

function AllocationState({ row }: { row: AllocationBitsFragment }) {
  const operation = row.releaseOperation;
  if (row.status !== 'RELEASING' || operation === null) return <Status state={row.status} />;
  return (
    <Link to="/operations/$id" params={{ id: operation.id }} title={operation.message}>
      <Status state={row.status} label={`Releasing ${operation.percent} %`} />
    </Link>
  );
}
