// What a change would do, shown before it is requested.
import { Link } from '@tanstack/react-router';
import { allocationName } from '../lib/capacity';
import type { PlanBitsFragment, WorkBitsFragment } from '../generated/graphql';
import { operationName, plural, words } from '../lib/format';
import { amount, noPrice } from '../lib/money';
import { Icon } from '../ui/Icons';
import type { IconName } from '../ui/Icons';
import { Notice } from '../ui/Problem';
import { Status } from '../ui/Status';
import type { Tone } from '../ui/Status';
import { Ago, DataTable, Json } from '../ui/parts';
import { ImpactTable } from './ImpactTable';
import { PlanCost } from './PlanCost';
import { deadlineWord, lostWord, planWord } from './flow';

type Planned = PlanBitsFragment['members'][number];
type Verdict = PlanBitsFragment['verdicts'][number];

/** The plan: its verdict first, then the affected members, the work that would be lost, and the checks. */
export function PlanPreview({ plan }: { plan: PlanBitsFragment }) {
  const word = planWord(plan);
  return (
    <div className="stack" data-plan={plan.hash} data-allowed={plan.allowed}>
      <Notice tone={word.tone} icon={word.tone === 'good' ? 'check' : 'warn'} role="status">
        <b>{word.text}</b>
        <ul className="plan-facts">
          <li>{plural(plan.members.length, 'member')} would be affected</li>
          <li>{lostWord(plan)}</li>
          <li>{deadlineWord(plan)}</li>
          <li>
            {plan.reversible ? 'It can be undone' : 'It cannot be undone'}
            {plan.reversal === '' ? '' : `: ${plan.reversal}`}
          </li>
          {plan.supersedes.map((each) => (
            <li key={each.id}>
              <Link to="/operations/$id" params={{ id: each.id }}>
                {operationName(each.kind)}
              </Link>
              , which is {words(each.state).toLowerCase()}, would be superseded
            </li>
          ))}
        </ul>
      </Notice>
      {plan.members.length > 0 && (
        <section className="stack-s">
          <h3>Members</h3>
          <div className="framed">
            <DataTable
              label="Affected members"
              columns={memberColumns}
              rows={plan.members.map((row, at) => ({ ...row, at }))}
              keyOf={(row) => String(row.at)}
            />
          </div>
        </section>
      )}
      {plan.workLost.length > 0 && (
        <section className="stack-s">
          <h3>Work that would be lost</h3>
          <WorkTable work={plan.workLost} total={plan.workLostTotal} />
        </section>
      )}
      {plan.workAtRisk.length > 0 && (
        <section className="stack-s">
          <h3>Work that would be lost at the deadline</h3>
          <WorkTable work={plan.workAtRisk} total={plan.workAtRiskTotal} />
        </section>
      )}
      {plan.impact.controlPlaneScope === 'TENANT' && <ImpactTable impact={plan.impact} />}
      <PlanCost cost={plan.cost} />
      <section className="stack-s">
        <h3>Checks</h3>
        <ul className="verdicts">
          {plan.verdicts.map((verdict) => (
            <VerdictRow key={verdict.source} verdict={verdict} />
          ))}
        </ul>
      </section>
      {hasContent(plan.change) && (
        <details className="fold">
          <summary>What else would change</summary>
          <Json value={plan.change} label="What else would change" />
        </details>
      )}
    </div>
  );
}

const memberColumns = [
  {
    head: 'Member',
    cell: (row: Planned) =>
      row.member === null ? (
        <span>
          {row.componentKey} <span className="faint">new</span>
        </span>
      ) : (
        <span className="strong">
          {row.member.componentKey} {row.member.index}
        </span>
      ),
  },
  { head: 'What', cell: (row: Planned) => actionWords[row.action] },
  {
    head: 'Now',
    cell: (row: Planned) =>
      row.member === null ? <span className="faint">—</span> : <Status state={row.member.status} bare />,
  },
  {
    head: 'Allocation',
    cell: (row: Planned) =>
      row.allocation === null ? <Chosen capacity={row.capacity} /> : allocationName(row.allocation),
  },
  {
    head: 'Walls',
    cell: (row: Planned) => (
      <span>
        {words(row.profile)}
        <span className="sub">{row.isolationClass === null ? '' : words(row.isolationClass)}</span>
      </span>
    ),
  },
  {
    head: 'Node',
    cell: (row: Planned) =>
      row.reachable ? (
        (row.member?.node?.name ?? <span className="faint">—</span>)
      ) : (
        <Status state="OFFLINE" bare label={`${row.member?.node?.name ?? 'Its node'} does not answer`} />
      ),
  },
];

/** What would be rented for a member, with its price. */
function Chosen({ capacity }: { capacity: Planned['capacity'] }) {
  if (capacity === null) return <span className="faint">to be requested</span>;
  const price = capacity.hourlyPrice;
  return (
    <span>
      {[capacity.sku, capacity.region].filter((each) => each !== '').join(', ')}
      <span className="sub">{price === null ? noPrice : `${amount(price.amount, price.currency)} an hour`}</span>
    </span>
  );
}

const actionWords: Readonly<Record<Planned['action'], string>> = {
  ADD: 'is added',
  DRAIN: 'is drained and stays',
  REMOVE: 'is removed',
  REPLACE: 'is replaced',
  RECOVER: 'is recovered',
  CHANGE: 'is changed in place',
};

/** Running work, as the app names it; at most 100 rows are sent, and the number of the others is shown. */
export function WorkTable({ work, total }: { work: readonly WorkBitsFragment[]; total?: number | null }) {
  return (
    <div className="framed">
      <DataTable
        label="Work"
        columns={workColumns}
        rows={work.map((row, at) => ({ ...row, at }))}
        keyOf={(row) => String(row.at)}
      />
      {typeof total === 'number' && total > work.length && (
        <p className="card-body small faint">{total - work.length} more are not shown.</p>
      )}
    </div>
  );
}

const workColumns = [
  {
    head: 'Work',
    cell: (row: WorkBitsFragment) => (
      <span>
        <span className="strong">{row.name === '' ? row.workId : row.name}</span>
        <span className="sub">
          {words(row.kind)} <span className="mono">{row.workId}</span>
        </span>
      </span>
    ),
  },
  { head: 'Owner', cell: (row: WorkBitsFragment) => (row.owner === '' ? <span className="faint">—</span> : row.owner) },
  { head: 'Since', cell: (row: WorkBitsFragment) => <Ago at={row.since} /> },
  {
    head: 'Note',
    cell: (row: WorkBitsFragment) =>
      row.message === '' ? <span className="faint">—</span> : <span className="wrap-any">{row.message}</span>,
  },
];

const sources: Readonly<Record<Verdict['source'], string>> = {
  STATE: 'State',
  COMPATIBILITY: 'Manifest',
  QUOTA: 'Quota',
  POLICY: 'Policy',
  ADAPTER: 'The app’s adapter',
};
const outcomes: Readonly<Record<Verdict['outcome'], { text: string; tone: Tone; icon: IconName }>> = {
  ALLOWED: { text: 'allows it', tone: 'good', icon: 'check' },
  REFUSED: { text: 'refuses it', tone: 'bad', icon: 'cross' },
  UNKNOWN: { text: 'could not answer', tone: 'warn', icon: 'info' },
};

function VerdictRow({ verdict }: { verdict: Verdict }) {
  const { text, tone, icon } = outcomes[verdict.outcome];
  return (
    <li className={`tone-${tone}`} data-source={verdict.source} data-outcome={verdict.outcome}>
      <Icon name={icon} size={15} />
      <span>
        <b>{sources[verdict.source]}</b> <span className="soft">{text}</span>
        {verdict.reasons.map((reason, at) => (
          <span key={at} className="msg said">
            {reason.message} <code>{reason.code}</code>
          </span>
        ))}
      </span>
    </li>
  );
}

function hasContent(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}
