// Control planes that this project offers to others of the tenant, or that others offer to it.
import { Button, SegmentedControl } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { tell } from '../api/hooks';
import { useRows } from '../api/pages';
import { useProjectId, useSession } from '../api/session';
import {
  AcceptControlPlaneDocument,
  ControlPlaneSharesDocument,
  DeclineControlPlaneDocument,
  DetachControlPlaneDocument,
  WithdrawControlPlaneDocument,
} from '../generated/graphql';
import type { ControlPlaneSharesQuery, ShareBitsFragment } from '../generated/graphql';
import { shorten, words } from '../lib/format';
import { AskDialog } from '../changes/AskDialog';
import { headOf } from '../lib/places';
import { Icon } from '../ui/Icons';
import { RowsCard } from '../ui/Rows';
import { HealthMark, Status } from '../ui/Status';
import { Ago, Empty, Glyph, PageHead } from '../ui/parts';
import { OfferDialog } from './OfferDialog';
import { UseDialog } from './UseDialog';
import { movesOf } from './moves';
import type { Move } from './moves';

const pick = (data: ControlPlaneSharesQuery) => data.controlPlaneShares;

const tones: Readonly<Record<ShareBitsFragment['status'], string>> = {
  OFFERED: 'PENDING',
  ATTACHED: 'ACTIVE',
  DECLINED: 'REMOVED',
  WITHDRAWN: 'REMOVED',
  DETACHED: 'REMOVED',
};

/** The list with both ends of each share. */
export function SharingPage() {
  const projectId = useProjectId();
  const { can } = useSession();
  const [ended, setEnded] = useState(false);
  const [offering, setOffering] = useState(false);
  const [asked, setAsked] = useState<{ move: Move; row: ShareBitsFragment }>();
  const [used, setUsed] = useState<ShareBitsFragment>();
  const list = useRows(
    ControlPlaneSharesDocument,
    useMemo(() => ({ projectId, ended }), [projectId, ended]),
    pick,
  );
  const done = () => {
    setAsked(undefined);
    setOffering(false);
    list.refresh();
  };
  const columns = [
    {
      head: 'Control plane',
      cell: (row: ShareBitsFragment) => <ControlPlane row={row} mine={row.ownerProjectId === projectId} />,
    },
    {
      head: 'Direction',
      cell: (row: ShareBitsFragment) =>
        row.ownerProjectId === projectId ? (
          <span>
            offered to
            <span className="sub">
              <ProjectName id={row.projectId} />
            </span>
          </span>
        ) : (
          <span>
            offered by
            <span className="sub">
              <ProjectName id={row.ownerProjectId} />
            </span>
          </span>
        ),
    },
    {
      head: 'State',
      cell: (row: ShareBitsFragment) => (
        <span>
          <Status state={tones[row.status]} label={words(row.status)} />
          {row.endReason !== '' && <span className="sub wrap-any">{row.endReason}</span>}
        </span>
      ),
    },
    { head: 'Why', cell: (row: ShareBitsFragment) => <span className="wrap-any">{row.reason}</span> },
    { head: 'Since', cell: (row: ShareBitsFragment) => <Ago at={row.answeredAt ?? row.createdAt} /> },
    {
      head: '',
      right: true,
      cell: (row: ShareBitsFragment) => (
        <span className="row" style={{ justifyContent: 'flex-end' }}>
          {row.status === 'ATTACHED' && row.projectId === projectId && (row.controlPlane?.actions.length ?? 0) > 0 && (
            <Button size="compact-xs" onClick={() => setUsed(row)}>
              Use
            </Button>
          )}
          {movesOf(row, projectId, can).map((move) => (
            <Button key={move} size="compact-xs" variant="default" onClick={() => setAsked({ move, row })}>
              {words(move)}
            </Button>
          ))}
        </span>
      ),
    },
  ];
  return (
    <div className="page">
      <PageHead
        {...headOf('/control-planes')}
        actions={
          can('control_plane.offer') && (
            <Button leftSection={<Icon name="plus" size={14} />} onClick={() => setOffering(true)}>
              Offer a control plane
            </Button>
          )
        }
      />
      <RowsCard<ShareBitsFragment>
        list={list}
        label="Shared control planes"
        columns={columns}
        empty={
          <Empty icon="nodes" title="Nothing is shared">
            No control plane is offered by this project or to it.
          </Empty>
        }
      >
        <div className="card-head">
          <SegmentedControl
            size="xs"
            aria-label="Which shares"
            value={ended ? 'all' : 'open'}
            onChange={(next) => setEnded(next === 'all')}
            data={[
              { value: 'open', label: 'Open' },
              { value: 'all', label: 'Including ended' },
            ]}
          />
        </div>
      </RowsCard>
      {offering && <OfferDialog onClose={() => setOffering(false)} onDone={done} />}
      {used !== undefined && <UseDialog share={used} onClose={() => setUsed(undefined)} />}
      {asked !== undefined && <MoveDialog {...asked} onClose={() => setAsked(undefined)} onDone={done} />}
    </div>
  );
}

function ProjectName({ id }: { id: string }) {
  const { projects } = useSession();
  return <span title={id}>{projects.find((each) => each.id === id)?.displayName ?? id}</span>;
}

function ControlPlane({ row, mine }: { row: ShareBitsFragment; mine: boolean }) {
  const { controlPlane } = row;
  if (controlPlane === null)
    return (
      <span className="mono fixed" title={row.instanceId}>
        {shorten(row.instanceId, 8, 6)}
      </span>
    );
  return (
    <span className="row" style={{ flexWrap: 'nowrap' }}>
      <Glyph slug={controlPlane.appSlug} size={30} />
      <span>
        {mine ? (
          <Link to="/workloads/$id" params={{ id: row.instanceId }}>
            {controlPlane.name}
          </Link>
        ) : (
          <span className="strong">{controlPlane.name}</span>
        )}
        <span className="sub">
          {controlPlane.appSlug} {controlPlane.appVersion} <Status state={controlPlane.status} bare />{' '}
          <HealthMark health={controlPlane.health} message="" over={controlPlane.status === 'STOPPED'} />
        </span>
      </span>
    </span>
  );
}

function MoveDialog({
  move,
  row,
  onClose,
  onDone,
}: {
  move: Move;
  row: ShareBitsFragment;
  onClose: () => void;
  onDone: () => void;
}) {
  const shareId = row.id;
  const sends = {
    accept: (reason: string | null) => tell(AcceptControlPlaneDocument, { shareId, reason }),
    decline: (reason: string | null) => tell(DeclineControlPlaneDocument, { shareId, reason }),
    withdraw: (reason: string | null) => tell(WithdrawControlPlaneDocument, { shareId, reason: reason ?? '' }),
    detach: (reason: string | null) => tell(DetachControlPlaneDocument, { shareId, reason }),
  };
  return (
    <AskDialog
      title={`${words(move)}: ${row.controlPlane?.name ?? row.instanceId}`}
      act={words(move)}
      danger={move === 'withdraw' || move === 'detach'}
      reasonNeeded={move === 'withdraw'}
      send={sends[move]}
      onClose={onClose}
      onDone={onDone}
    >
      {intros[move]}
    </AskDialog>
  );
}

const intros: Readonly<Record<Move, string>> = {
  accept:
    'People and service accounts of this project may then use the actions of the app that their permissions here allow.',
  decline: 'The other project sees that you declined, and your reason if you give one.',
  withdraw: 'The other project loses the control plane immediately.',
  detach: 'This project loses the control plane immediately. It can be offered again.',
};
