// The gap log: what the platform lacks for apps, what was decided, and the release that closed it.
import { Button, SegmentedControl } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { useRows } from '../api/pages';
import { useProjectId, useSession } from '../api/session';
import { GapsDocument } from '../generated/graphql';
import type { GapBitsFragment, GapsQuery } from '../generated/graphql';
import { headOf } from '../lib/places';
import { RowsCard } from '../ui/Rows';
import { Status } from '../ui/Status';
import { Ago, Card, Empty, Fact, PageHead } from '../ui/parts';
import type { Column } from '../ui/parts';
import { CloseGapDialog, DecideGapDialog, RaiseGapDialog } from './GapDialogs';
import { Reference } from './Reference';
import { conditions, decisionsFrom, kinds } from './words';

const pick = (data: GapsQuery) => data.gaps;

/** The log: of one app, of the project's apps, or of all for the platform's staff. id is the entry that is shown. */
export function GapsPage({ app, id }: { app: string | undefined; id: string | undefined }) {
  const projectId = useProjectId();
  const { can } = useSession();
  const staff = can('gap.decide');
  const [all, setAll] = useState(true);
  const [raising, setRaising] = useState(false);
  const [shown, setShown] = useState(id);
  const variables = useMemo(
    () => ({ filter: app !== undefined ? { appSlug: app } : all && staff ? {} : { projectId } }),
    [app, all, staff, projectId],
  );
  const list = useRows(GapsDocument, variables, pick);
  const columns = useMemo(() => columnsOf(setShown), []);
  const entry = list.rows.find((row) => row.id === shown);
  const done = () => {
    setRaising(false);
    list.refresh();
  };
  return (
    <div className="page">
      <PageHead
        {...headOf('/gaps')}
        title={app === undefined ? 'Gaps' : `Gaps of ${app}`}
        actions={can('gap.raise') && <Button onClick={() => setRaising(true)}>Raise a gap</Button>}
      />
      {entry !== undefined && <GapCard gap={entry} staff={staff} onChanged={list.refresh} />}
      <RowsCard<GapBitsFragment>
        list={list}
        label="Gaps"
        columns={columns}
        empty={
          <Empty icon="check" title="Nothing is missing">
            No one has raised a gap here.
          </Empty>
        }
      >
        {staff && app === undefined && (
          <div className="card-head">
            <SegmentedControl
              size="xs"
              aria-label="Which gaps"
              value={all ? 'all' : 'project'}
              onChange={(next) => setAll(next === 'all')}
              data={[
                { value: 'all', label: 'All apps' },
                { value: 'project', label: 'Apps of this project' },
              ]}
            />
          </div>
        )}
      </RowsCard>
      {raising && <RaiseGapDialog app={app ?? ''} onClose={() => setRaising(false)} onDone={done} />}
    </div>
  );
}

function columnsOf(show: (id: string) => void): readonly Column<GapBitsFragment>[] {
  return [
    {
      head: 'Gap',
      cell: (row) => (
        <button type="button" className="copy strong" style={{ color: 'var(--accent)' }} onClick={() => show(row.id)}>
          {row.title}
        </button>
      ),
    },
    { head: 'State', cell: (row) => <Status state={row.state} /> },
    { head: 'Kind', cell: (row) => kinds[row.kind] },
    {
      head: 'App',
      cell: (row) => (
        <Link to="/onboarding/$slug" params={{ slug: row.appSlug }} search={{ version: row.version || undefined }}>
          {row.appSlug} {row.version}
        </Link>
      ),
    },
    { head: 'Raised', cell: (row) => <Ago at={row.createdAt} /> },
    { head: 'By', cell: (row) => row.raisedBy.name },
  ];
}

function GapCard({ gap, staff, onChanged }: { gap: GapBitsFragment; staff: boolean; onChanged: () => void }) {
  const [open, setOpen] = useState<'decide' | 'close'>();
  const close = () => setOpen(undefined);
  const done = () => {
    close();
    onChanged();
  };
  return (
    <Card
      title={gap.title}
      label="Gap"
      aside={
        staff && (
          <span className="row">
            {decisionsFrom(gap.state).length > 0 && (
              <Button size="compact-xs" variant="default" onClick={() => setOpen('decide')}>
                Decide
              </Button>
            )}
            {gap.state === 'ACCEPTED' && (
              <Button size="compact-xs" variant="default" onClick={() => setOpen('close')}>
                Close by a release
              </Button>
            )}
          </span>
        )
      }
    >
      <p style={{ marginBottom: 12 }}>{gap.description}</p>
      <dl className="facts">
        <Fact term="State">
          <Status state={gap.state} />
        </Fact>
        <Fact term="Kind">{kinds[gap.kind]}</Fact>
        {gap.condition !== null && <Fact term="Condition">{conditions[gap.condition]}</Fact>}
        {gap.instanceId !== null && (
          <Fact term="Workload">
            <Reference id={gap.instanceId} />
          </Fact>
        )}
        {gap.evidence.length > 0 && (
          <Fact term="Evidence">
            {gap.evidence.map((each) => (
              <div key={each}>
                <Reference id={each} />
              </div>
            ))}
          </Fact>
        )}
        {gap.decidedAt !== null && (
          <Fact term="Decided">
            {gap.decision} <span className="faint">by {gap.decidedBy?.name}</span> <Ago at={gap.decidedAt} />
          </Fact>
        )}
        {gap.closedAt !== null && (
          <Fact term="Closed">
            {gap.release}: {gap.closeReason} <span className="faint">by {gap.closedBy?.name}</span>{' '}
            <Ago at={gap.closedAt} /> <Reference id={gap.releaseManifestId} />
          </Fact>
        )}
      </dl>
      {open === 'decide' && <DecideGapDialog gap={gap} onClose={close} onDone={done} />}
      {open === 'close' && <CloseGapDialog gap={gap} onClose={close} onDone={done} />}
    </Card>
  );
}
