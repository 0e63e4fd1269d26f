// What the project costs this month: so far, by day, by app and person, with a forecast and its budgets.
import { useRead } from '../api/hooks';
import { useProjectId } from '../api/session';
import { ProjectCostsDocument } from '../generated/graphql';
import type { ProjectCostsQuery, CostShareBitsFragment } from '../generated/graphql';
import { plural } from '../lib/format';
import { amount, portion } from '../lib/money';
import { Notice, ProblemPage } from '../ui/Problem';
import { DataTable, Empty, Loading, PageHead } from '../ui/parts';
import { Budgets } from './Budgets';

/** The costs of the chosen project. */
export function CostsPage() {
  const projectId = useProjectId();
  const read = useRead(ProjectCostsDocument, { projectId });
  return (
    <div className="page">
      <PageHead
        title="Costs"
        lede="What this project costs this month, summed from the books. Usage of the last minutes is not in them yet."
      />
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
          <dd>{amount(hourly, currency)}</dd>
          <dt>Forecast for the month</dt>
          <dd>{amount(forecast, currency)}</dd>
        </dl>
        <Days shares={data.byDay} />
      </section>
      <Budgets budgets={data.budgets} currency={currency} refresh={refresh} />
      <ShareTable title="By app" none="capacity that no instance used" shares={data.byApp} />
      <ShareTable title="By person" none="nobody in particular" shares={data.byPerson} />
      <ShareTable title="By workload" none="capacity that no instance used" shares={data.byInstance} />
      <ShareTable title="By what is metered" none="" shares={data.byMeter} />
    </div>
  );
}

/** A bar for each day that cost something. */
function Days({ shares }: { shares: readonly CostShareBitsFragment[] }) {
  if (shares.length === 0) return <Empty icon="cost" title="Nothing is booked this month yet." />;
  const most = shares.map((each) => each.amount);
  return (
    <figure className="cost-days" aria-label="Cost by day">
      {shares.map((each) => (
        <div key={each.key} title={`${each.key}: ${amount(each.amount, each.currency)}`}>
          <span className="bar" style={{ height: `${portion(each.amount, most)}%` }} />
          <span className="day">{each.key.slice(8, 10)}</span>
        </div>
      ))}
    </figure>
  );
}

/** Shares of costs, the dearest first. */
export function ShareTable({
  title,
  none,
  shares,
}: {
  title: string;
  none: string;
  shares: readonly CostShareBitsFragment[];
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
          columns={shareColumns(none)}
          rows={[...shares]}
          keyOf={(row) => `${row.key} ${row.currency}`}
        />
      )}
    </section>
  );
}

const shareColumns = (none: string) => [
  {
    head: 'Of',
    cell: (row: CostShareBitsFragment) =>
      row.key === '' ? (
        <span className="faint">{none}</span>
      ) : (
        <span>
          <span className="strong">{row.name}</span>
          {row.name !== row.key && <span className="sub mono">{row.key}</span>}
        </span>
      ),
  },
  { head: 'Cost', cell: (row: CostShareBitsFragment) => amount(row.amount, row.currency) },
];
