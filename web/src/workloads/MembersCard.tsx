// The members of a workload: a diagram of members on their nodes, and the same as a table.
import { Button, Checkbox, Loader, SegmentedControl, Switch } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { Suspense, lazy, useMemo, useState } from 'react';
import { useSession } from '../api/session';
import { allocationName, intentWord } from '../lib/capacity';
import { MemberDialog, RemoveSeveralDialog, memberName } from '../lifecycle/MemberDialogs';
import { memberCan, memberKey } from '../lifecycle/rules';
import type { MemberAct } from '../lifecycle/rules';
import type { MemberBitsFragment } from '../generated/graphql';
import { plural, shorten } from '../lib/format';
import { Status, HealthMark } from '../ui/Status';
import { Card, DataTable } from '../ui/parts';
import type { Column } from '../ui/parts';
import { Labels } from './Labels';
import { activeOf, marksOf } from './counts';
import { MemberDrawer } from './MemberDrawer';
import { MemberMenu, changeable } from './MemberMenu';
import type { Workload } from '../lifecycle/workload';
import { useMembers } from './useMembers';

const Topology = lazy(() => import('../topology/Topology'));

/** The components with their counts, and the members as a diagram or a table. */
export function MembersCard({ workload, refresh }: { workload: Workload; refresh: () => void }) {
  const { members: all, more } = useMembers(workload);
  const [past, setPast] = useState(false);
  const gone = all.filter((member) => member.status === 'REMOVED').length;
  const members = useMemo(
    () => (past || gone === all.length ? all : all.filter((member) => member.status !== 'REMOVED')),
    [all, past, gone],
  );
  const phone = useMediaQuery('(max-width: 860px)', undefined, { getInitialValueInEffect: false });
  const [view, setView] = useState<string>();
  const [shown, setShown] = useState<string>();
  const [asked, setAsked] = useState<{ member: MemberBitsFragment; act: MemberAct }>();
  const drift = useMemo(
    () =>
      new Map(
        workload.drift.flatMap((each) => (each.memberId === null ? [] : [[each.memberId, each.message] as const])),
      ),
    [workload.drift],
  );
  const now = view ?? (phone ? 'table' : 'picture');
  const ask = (member: MemberBitsFragment, act: MemberAct) => setAsked({ member, act });
  const open = members.find((member) => member.id === shown);
  const { can } = useSession();
  const [marked, setMarked] = useState<readonly string[]>([]);
  const [several, setSeveral] = useState<readonly MemberBitsFragment[]>();
  const removing = changeable(workload) && can(memberKey(workload.permissionFamily, 'remove'));
  const leaving = removing ? members.filter((member) => marked.includes(member.id) && memberCan(member, 'remove')) : []; // one may have left by now
  const mark: Mark | undefined = removing
    ? {
        marked,
        toggle: (id) =>
          setMarked((before) => (before.includes(id) ? before.filter((each) => each !== id) : [...before, id])),
      }
    : undefined;
  const columns = columnsOf(workload, drift, setShown, ask, mark);
  const tall = members.length > 10;
  return (
    <Card
      title="Members"
      pad={false}
      label="Members"
      aside={
        members.length > 0 &&
        gone < all.length && (
          <SegmentedControl
            size="xs"
            aria-label="How members are shown"
            value={now}
            onChange={setView}
            data={[
              { value: 'picture', label: 'Diagram' },
              { value: 'table', label: 'Table' },
            ]}
          />
        )
      }
    >
      <div className="roles">
        {workload.roles.map((role) => (
          <div key={role.componentKey} data-role={role.componentKey}>
            <div className="small faint">{role.displayName}</div>
            <b>{activeOf(role)}</b> <span className="of">of {role.desired}</span>
            <div className="small soft">{role.summary}</div>
            {role.runtimeState !== null && (
              <div className="small soft" data-runtime={role.runtimeState.health}>
                <HealthMark health={role.runtimeState.health} message={role.runtimeState.summary} />{' '}
                {role.runtimeState.summary}
              </div>
            )}
            {role.capacityIntent !== null && (
              <div className="small faint">Further members: {intentWord(role.capacityIntent)}</div>
            )}
            <Pips desired={role.desired} marks={marksOf(all, role.componentKey)} />
          </div>
        ))}
      </div>
      {gone < all.length && now === 'picture' && (
        <div className={`topology${tall ? ' tall' : ''}`} data-topology>
          <Suspense
            fallback={
              <div style={{ display: 'grid', placeItems: 'center', height: '100%' }}>
                <Loader size="sm" role="status" aria-label="Loading the diagram" />
              </div>
            }
          >
            <Topology components={workload.roles} members={members} drift={drift} onOpen={setShown} />
          </Suspense>
        </div>
      )}
      {members.length > 0 && (now === 'table' || gone === all.length) && (
        <DataTable label="Members" rows={members} keyOf={(row) => row.id} columns={columns} />
      )}
      {now === 'table' && leaving.length > 0 && (
        <div className="card-body tight">
          <Button
            size="compact-sm"
            color="red"
            variant="light"
            disabled={leaving.length > 64}
            onClick={() => setSeveral(leaving)}
          >
            Remove {plural(leaving.length, 'member')}
          </Button>
        </div>
      )}
      {now === 'table' && gone > 0 && gone < all.length && (
        <div className="card-body tight">
          <Switch
            size="xs"
            label={`Show ${plural(gone, 'removed member')}`}
            checked={past}
            onChange={(event) => setPast(event.currentTarget.checked)}
          />
        </div>
      )}
      {more && <p className="card-body small faint">Only the first {members.length} members are shown.</p>}
      <MemberDrawer
        member={open}
        workload={workload}
        drift={open === undefined ? undefined : drift.get(open.id)}
        onClose={() => setShown(undefined)}
        onAct={ask}
      />
      {several !== undefined && (
        <RemoveSeveralDialog
          members={several}
          onClose={() => setSeveral(undefined)}
          onDone={() => {
            setMarked([]);
            refresh();
          }}
        />
      )}
      {asked !== undefined && (
        <MemberDialog
          act={asked.act}
          member={asked.member}
          instanceId={workload.id}
          onClose={() => setAsked(undefined)}
          onDone={() => {
            setShown(undefined);
            refresh();
          }}
        />
      )}
    </Card>
  );
}

/** One mark per member in the tone of its status, then one for each that is missing; at most 32 are drawn. */
function Pips({ desired, marks }: { desired: number; marks: readonly string[] }) {
  const total = Math.min(32, Math.max(desired, marks.length));
  return (
    <div className="pips" aria-hidden="true">
      {Array.from({ length: total }, (_, at) => (
        <i key={at} className={marks[at] ?? ''} />
      ))}
    </div>
  );
}

/** The members that are marked, to be removed together. */
interface Mark {
  readonly marked: readonly string[];
  readonly toggle: (id: string) => void;
}

function columnsOf(
  workload: Workload,
  drift: ReadonlyMap<string, string>,
  show: (id: string) => void,
  onAct: (member: MemberBitsFragment, act: MemberAct) => void,
  mark: Mark | undefined,
): Column<MemberBitsFragment>[] {
  return [
    ...(mark === undefined
      ? []
      : [
          {
            head: 'Select',
            cell: (row: MemberBitsFragment) =>
              memberCan(row, 'remove') && (
                <Checkbox
                  size="xs"
                  aria-label={`Select ${memberName(row)}`}
                  checked={mark.marked.includes(row.id)}
                  onChange={() => mark.toggle(row.id)}
                />
              ),
          },
        ]),
    {
      head: 'Member',
      cell: (row) => (
        <span data-member={row.id} data-state={row.status}>
          <button type="button" className="member-name" onClick={() => show(row.id)}>
            {row.componentKey} {row.index}
          </button>
          {row.cordoned && (
            <>
              {' '}
              <span className="tag">cordoned</span>
            </>
          )}
          {drift.has(row.id) && (
            <>
              {' '}
              <span className="tag" title={drift.get(row.id)}>
                drift
              </span>
            </>
          )}
          <span className="sub mono" title={row.id}>
            {shorten(row.id, 10, 6)}
          </span>
          <Labels value={row.labels} />
        </span>
      ),
    },
    { head: 'Status', cell: (row) => <Status state={row.status} /> },
    {
      head: 'Health',
      cell: (row) => (
        <HealthMark
          health={row.health}
          message={row.healthMessage}
          over={row.status === 'REMOVED' || row.status === 'FAILED'}
        />
      ),
    },
    {
      head: 'Node',
      cell: (row) =>
        row.node === null ? (
          <span className="faint">—</span>
        ) : (
          <span>
            {row.node.name}
            {row.node.status === 'OFFLINE' && (
              <>
                {' '}
                <Status state="OFFLINE" bare />
              </>
            )}
            <span className="sub mono">{row.node.address}</span>
          </span>
        ),
    },
    {
      head: 'Allocation',
      cell: (row) => (row.allocation === null ? <span className="faint">—</span> : allocationName(row.allocation)),
    },
    { head: '', right: true, cell: (row) => <MemberMenu member={row} workload={workload} onAct={onAct} /> },
  ];
}
