// What the project costs this month: so far, by day, by app and person, with a forecast and its budgets.
import { useRead } from '../api/hooks';
import { useProjectId } from '../api/session';
import { ProjectCostsDocument } from '../generated/graphql';
import type { ProjectCostsQuery, CostShareBitsFragment } from '../generated/graphql';
import { plural, words } from '../lib/format';
import { about, amount } from '../lib/money';
import { headOf } from '../lib/places';
import { Notice, ProblemPage } from '../ui/Problem';
import { DataTable, Empty, Loading, PageHead } from '../ui/parts';
import { Budgets } from './Budgets';
import { date, daysOf } from './days';

/** The costs of the chosen project. */
export function CostsPage() {
  const projectId = useProjectId();
  const read = useRead(ProjectCostsDocument, { projectId });
  return (
    <div className="page">
      <PageHead {...headOf('/costs')} />
      {read.data !== undefined && <Costs data={read.data} refresh={read.refresh} />}
      {read.data === undefined &&
        (read.problem !== undefined && !read.loading ? (
          <ProblemPage problem={read.problem} onRetry={read.refresh} />
        ) : (
          <div className="card">
            <Loading lines={8} />
          </div>
        ))}
    </div>
  );
}

function Costs({ data, refresh }: { data: ProjectCostsQuery; refresh: () => void }) {
  const { currency, spent, hourly, forecast, unpriced } = data.costSummary;
  return (
    <div className="stack">
      {unpriced > 0 && (
        <Notice tone="warn" icon="info">
          No price set for {plural(unpriced, 'allocation')}: what that costs is in no sum below.
        </Notice>
      )}
      <section className="card card-body" aria-label="This month" data-costs="">
        <dl className="facts">
          <dt>So far</dt>
          <dd data-spent={spent}>{amount(spent, currency)}</dd>
          <dt>An hour now</dt>
          <dd data-hourly={hourly}>{amount(hourly, currency)}</dd>
          <dt>Forecast for the month</dt>
          <dd>{about(forecast, currency)}</dd>
        </dl>
        <Days summary={data.costSummary} shares={data.byDay} />
      </section>
      <Budgets budgets={data.budgets} currency={currency} refresh={refresh} />
      <ShareTable title="By app" none="what no instance used" shares={data.byApp} />
      <ShareTable title="By person" none="no one in particular" shares={data.byPerson} />
      <ShareTable title="By workload" none="what no instance used" shares={data.byInstance} />
      <ShareTable title="By what is metered" none="" shares={data.byMeter} />
    </div>
  );
}

/** A bar for each day of the month, and the dearest day. */
function Days({
  summary,
  shares,
}: {
  summary: ProjectCostsQuery['costSummary'];
  shares: readonly CostShareBitsFragment[];
}) {
  const { days, dearest } = daysOf(summary, shares);
  if (dearest === undefined) return <Empty icon="cost" title="Nothing is booked this month yet." />;
  const said = `${date(dearest.key)} cost the most: ${amount(dearest.amount, dearest.currency)}`;
  return (
    <figure className="cost-figure">
      <div className="cost-days" role="img" aria-label={`Cost by day. ${said}.`}>
        {days.map((day) => (
          <div key={day.key} data-day={day.key} title={`${date(day.key)}: ${amount(day.amount, summary.currency)}`}>
            {day.height > 0 && <span className="bar" style={{ height: `${day.height}%` }} />}
            <span className="day">{day.label}</span>
          </div>
        ))}
      </div>
      <figcaption className="soft">By day, in UTC. {said}.</figcaption>
    </figure>
  );
}

/** Shares of costs, the dearest first; reasons of the platform are written as words. */
export function ShareTable({
  title,
  none,
  shares,
  reasons = false,
}: {
  title: string;
  none: string;
  shares: readonly CostShareBitsFragment[];
  reasons?: boolean;
}) {
  return (
    <section className="card" aria-label={title}>
      <header className="card-head">
        <h2>{title}</h2>
      </header>
      {shares.length === 0 ? (
        <div className="card-body soft">Nothing yet.</div>
      ) : (
        <DataTable
          label={title}
          columns={shareColumns(none, reasons)}
          rows={[...shares]}
          keyOf={(row) => `${row.key} ${row.currency}`}
        />
      )}
    </section>
  );
}

const shareColumns = (none: string, reasons: boolean) => [
  {
    head: 'Of',
    cell: (row: CostShareBitsFragment) =>
      row.key === '' ? (
        <span className="faint">{none}</span>
      ) : (
        <span>
          <span className="strong">{reasons ? words(row.name) : row.name}</span>
          {row.name !== row.key && <span className="sub mono">{row.key}</span>}
        </span>
      ),
  },
  { head: 'Cost', right: true, cell: (row: CostShareBitsFragment) => amount(row.amount, row.currency) },
];
