// The volumes of the project, and their storage classes.
import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { useThrottled } from '../api/hooks';
import { useRows } from '../api/pages';
import { useProjectId, useSession } from '../api/session';
import { useWhile } from '../api/useWhile';
import { VolumesDocument } from '../generated/graphql';
import type { VolumeBitsFragment, VolumesQuery } from '../generated/graphql';
import { bytes } from '../lib/format';
import { amount, noPrice } from '../lib/money';
import { headOf } from '../lib/places';
import { Icon } from '../ui/Icons';
import { RowsCard } from '../ui/Rows';
import { Status } from '../ui/Status';
import { Ago, Empty, PageHead } from '../ui/parts';
import { ClassesCard } from './ClassesCard';
import { FilesDialog } from './FilesDialog';
import { CreateVolumeDialog, DeleteVolumeDialog, ResizeVolumeDialog } from './VolumeDialogs';
import { usedPercent } from './volume';

const pick = (data: VolumesQuery) => data.volumes;

/** The list, with creating, growing and deleting. */
export function VolumesPage() {
  const projectId = useProjectId();
  const { can } = useSession();
  const [asking, setAsking] = useState(false);
  const [growing, setGrowing] = useState<VolumeBitsFragment>();
  const [leaving, setLeaving] = useState<VolumeBitsFragment>();
  const [looking, setLooking] = useState<VolumeBitsFragment>();
  const list = useRows(
    VolumesDocument,
    useMemo(() => ({ projectId }), [projectId]),
    pick,
  );
  useWhile(
    list.rows.some((row) => row.status === 'DELETING'),
    useThrottled(list.refresh),
  );
  const create = can('volume.create') ? (
    <Button leftSection={<Icon name="plus" size={15} />} onClick={() => setAsking(true)}>
      Create a volume
    </Button>
  ) : undefined;
  return (
    <div className="page">
      <PageHead {...headOf('/volumes')} actions={create} />
      <div className="stack">
        <RowsCard<VolumeBitsFragment>
          list={list}
          label="Volumes"
          columns={columns({
            look: can('volume.files.read') ? setLooking : undefined,
            grow: can('volume.update') ? setGrowing : undefined,
            remove: can('volume.delete') ? setLeaving : undefined,
          })}
          empty={
            <Empty icon="volumes" title="No volumes yet" action={create}>
              Create one for home folders, data or results that are to stay.
            </Empty>
          }
        />
        <ClassesCard mayManage={can('storage.class.manage')} />
      </div>
      {looking !== undefined && (
        <FilesDialog
          volume={looking}
          mayWrite={can('volume.files.write')}
          onClose={() => {
            setLooking(undefined);
            list.refresh();
          }}
        />
      )}
      {asking && <CreateVolumeDialog onClose={() => setAsking(false)} onDone={list.refresh} />}
      {growing !== undefined && (
        <ResizeVolumeDialog volume={growing} onClose={() => setGrowing(undefined)} onDone={list.refresh} />
      )}
      {leaving !== undefined && (
        <DeleteVolumeDialog volume={leaving} onClose={() => setLeaving(undefined)} onDone={list.refresh} />
      )}
    </div>
  );
}

function Hour({ row }: { row: VolumeBitsFragment }) {
  if (row.hourlyCost === null) return <span className="faint">{row.status === 'DELETED' ? '—' : noPrice}</span>;
  return (
    <span className="nowrap" data-hourly={row.hourlyCost.amount}>
      {amount(row.hourlyCost.amount, row.hourlyCost.currency)}
    </span>
  );
}

type Act = ((row: VolumeBitsFragment) => void) | undefined;

function columns({ look, grow, remove }: { look: Act; grow: Act; remove: Act }) {
  return [
    {
      head: 'Name',
      cell: (row: VolumeBitsFragment) => (
        <>
          <span className="strong" title={row.id}>
            {row.name}
          </span>
          <span className="sub">{where(row)}</span>
        </>
      ),
    },
    {
      head: 'Status',
      cell: (row: VolumeBitsFragment) => (
        <span>
          <Status state={row.status} />
          {row.message !== '' && <span className="sub">{row.message}</span>}
        </span>
      ),
    },
    { head: 'Size', right: true, cell: (row: VolumeBitsFragment) => <Size row={row} /> },
    { head: 'An hour', right: true, cell: (row: VolumeBitsFragment) => <Hour row={row} /> },
    { head: 'Used by', cell: (row: VolumeBitsFragment) => <Users row={row} /> },
    { head: 'Since', cell: (row: VolumeBitsFragment) => <Ago at={row.createdAt} /> },
    {
      head: '',
      right: true,
      cell: (row: VolumeBitsFragment) =>
        row.status !== 'READY' ? null : (
          <span className="row" style={{ flexWrap: 'nowrap', justifyContent: 'flex-end' }}>
            <Act row={row} act={look} text="Files" />
            <Act row={row} act={grow} text="Grow" />
            <Act row={row} act={remove} text="Delete" />
          </span>
        ),
    },
  ];
}

function Act({ row, act, text }: { row: VolumeBitsFragment; act: Act; text: string }) {
  if (act === undefined) return null;
  return (
    <Button size="compact-xs" variant="default" onClick={() => act(row)}>
      {text}
      <span className="hidden-visually"> {row.name}</span>
    </Button>
  );
}

/** The place of its files: the storage class, and the node of a local one. */
function where({ storageClass, node }: VolumeBitsFragment): string {
  return [`${storageClass.title} (${storageClass.name})`, node === null ? '' : `on ${node.name}`]
    .filter(Boolean)
    .join(', ');
}

/** Its size, and how much of it is used once that was measured. */
function Size({ row }: { row: VolumeBitsFragment }) {
  return (
    <span className="num nowrap">
      {row.sizeGiB} GiB
      {row.usedBytes !== null && (
        <span className="sub">
          {bytes(row.usedBytes)} used, {usedPercent(row)} %
        </span>
      )}
    </span>
  );
}

function Users({ row }: { row: VolumeBitsFragment }) {
  if (row.users.length === 0) return <span className="faint">None</span>;
  return (
    <>
      {row.users.map((user) => (
        <span key={`${user.instanceId} ${user.slot}`}>
          <Link to="/workloads/$id" params={{ id: user.instanceId }}>
            {user.instanceName}
          </Link>
          <span className="sub">
            <span className="mono">{user.path}</span>
            {user.readOnly && ' · read only'}
          </span>
        </span>
      ))}
    </>
  );
}
