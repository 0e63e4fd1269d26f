// One member: its state, its place, and the changes it allows.
import { Button, Drawer } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useSession } from '../api/session';
import { allocationName } from '../lib/capacity';
import { actNames, offered } from '../lifecycle/rules';
import type { MemberAct } from '../lifecycle/rules';
import type { MemberBitsFragment } from '../generated/graphql';
import { labelOf, operationName } from '../lib/format';
import { factsOf } from '../lib/table';
import { Notice } from '../ui/Problem';
import { HealthMark, Status } from '../ui/Status';
import { Ago, Copy, Fact, Json } from '../ui/parts';
import { changeable } from './MemberMenu';
import { Labels } from './Labels';
import type { Workload } from '../lifecycle/workload';

/** The drawer, open while there is a member. */
export function MemberDrawer({
  member,
  workload,
  drift,
  onClose,
  onAct,
}: {
  member: MemberBitsFragment | undefined;
  workload: Workload;
  drift: string | undefined;
  onClose: () => void;
  onAct: (member: MemberBitsFragment, act: MemberAct) => void;
}) {
  return (
    <Drawer
      opened={member !== undefined}
      onClose={onClose}
      position="right"
      size="md"
      title={
        member === undefined ? (
          ''
        ) : (
          <b>
            {member.componentKey} {member.index}
          </b>
        )
      }
    >
      {member !== undefined && <MemberView member={member} workload={workload} drift={drift} onAct={onAct} />}
    </Drawer>
  );
}

function MemberView({
  member,
  workload,
  drift,
  onAct,
}: {
  member: MemberBitsFragment;
  workload: Workload;
  drift: string | undefined;
  onAct: (member: MemberBitsFragment, act: MemberAct) => void;
}) {
  const { can } = useSession();
  const acts = changeable(workload) ? offered(member, workload.permissionFamily, can) : [];
  return (
    <div className="stack" data-member-view={member.id}>
      {drift !== undefined && (
        <Notice tone="warn" icon="warn">
          <span className="said">{drift}</span>
        </Notice>
      )}
      <dl className="facts">
        <Fact term="Status">
          <span className="row">
            <Status state={member.status} />
            {member.cordoned && <span className="tag">cordoned</span>}
          </span>
        </Fact>
        <Fact term="Health">
          <HealthMark health={member.health} message={member.healthMessage} over={member.status === 'REMOVED'} />
          {member.healthMessage !== '' && <div className="small soft said">{member.healthMessage}</div>}
        </Fact>
        <Fact term="Node">
          {member.node === null ? (
            <span className="faint">none yet</span>
          ) : (
            <span>
              {member.node.name} <span className="mono faint">{member.node.address}</span>{' '}
              {member.node.status === 'OFFLINE' && <Status state="OFFLINE" bare label="Does not answer" />}
            </span>
          )}
        </Fact>
        <Fact term="Allocation">
          {member.allocation === null ? <span className="faint">—</span> : allocationName(member.allocation)}
        </Fact>
        <Fact term="Labels">
          <Labels value={member.labels} />
        </Fact>
        <Fact term="Last operation">
          {member.lastOperation === null ? (
            <span className="faint">—</span>
          ) : (
            <Link to="/operations/$id" params={{ id: member.lastOperation.id }}>
              {operationName(member.lastOperation.kind)} <Status state={member.lastOperation.state} operation bare />
            </Link>
          )}
        </Fact>
        <Fact term="Requested">
          <Ago at={member.createdAt} />
        </Fact>
        <Fact term="Last change">
          <Ago at={member.updatedAt} />
        </Fact>
        <Fact term="Id">
          <Copy value={member.id} what="member id" />
        </Fact>
        <Fact term="Correlation id">
          <Copy value={member.correlationId} what="correlation id" />
        </Fact>
      </dl>
      {acts.length > 0 && (
        <div className="row" role="group" aria-label="Actions">
          {acts.map((act) => (
            <Button
              key={act}
              size="xs"
              variant={act === 'remove' ? 'light' : 'default'}
              {...(act === 'remove' ? { color: 'red' } : {})}
              onClick={() => onAct(member, act)}
            >
              {actNames[act]}
            </Button>
          ))}
        </div>
      )}
      <FromAdapter detail={member.adapterDetail} />
    </div>
  );
}

/** What only the adapter reports of the member: plain values in words; lists and the rest stay folded. */
function FromAdapter({ detail }: { detail: unknown }) {
  const facts = factsOf(detail);
  if (detail === null || detail === undefined) return null;
  return (
    <div className="stack-s">
      <h3>From the app</h3>
      {facts.length > 0 && (
        <dl className="facts">
          {facts.map(([key, value]) => (
            <Fact key={key} term={labelOf(key)}>
              <span className="wrap-any">{value === '' ? '—' : value}</span>
            </Fact>
          ))}
        </dl>
      )}
      <details>
        <summary className="small faint">All that the adapter reports</summary>
        <Json value={detail} label="Adapter detail" />
      </details>
    </div>
  );
}
