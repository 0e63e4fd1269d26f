// How a change affects the price of an hour. What has no price is labelled so, and never shown as zero.
import type { CostBitsFragment } from '../generated/graphql';
import { shapeName } from '../lib/capacity';
import { plural } from '../lib/format';
import { amount, difference, noPrice } from '../lib/money';
import { DataTable } from '../ui/parts';

type Line = CostBitsFragment['capacity'][number];
type Rate = CostBitsFragment['usage'][number];

/** The sums of a plan, and their parts. */
export function PlanCost({ cost }: { cost: CostBitsFragment }) {
  return (
    <section className="stack-s" data-cost="">
      <h3>Cost by the hour</h3>
      <CostWords cost={cost} />
      {cost.capacity.length > 0 && (
        <div className="framed">
          <DataTable
            label="Capacity and its price"
            columns={lineColumns}
            rows={cost.capacity.map((row, at) => ({ ...row, at }))}
            keyOf={(row) => String(row.at)}
          />
        </div>
      )}
      {cost.usage.length > 0 && (
        <div className="framed">
          <DataTable
            label="Prices of the app’s use"
            columns={rateColumns}
            rows={cost.usage}
            keyOf={(row) => row.dimension}
          />
        </div>
      )}
    </section>
  );
}

/** The sums of a plan in words. */
export function CostWords({ cost }: { cost: CostBitsFragment }) {
  if (cost.totals.length + cost.unpriced === 0) return <p className="soft">It uses no capacity.</p>;
  return (
    <ul className="plan-facts">
      {cost.totals.map((total) => (
        <li key={total.currency}>
          <b>{amount(total.after, total.currency)}</b> an hour
          {total.delta === '0'
            ? ', as before'
            : ` after it, ${amount(total.before, total.currency)} now: ${difference(total.delta, total.currency)}`}
          {total.left !== '0' && (
            <>
              ; {amount(total.left, total.currency)} of it for capacity that would be unused, and costs until it is
              released
            </>
          )}
        </li>
      ))}
      {cost.unpriced > 0 && (
        <li>
          {noPrice} for {plural(cost.unpriced, 'allocation')}: what that costs is not known
        </li>
      )}
    </ul>
  );
}

const effects: Readonly<Record<Line['effect'], string>> = {
  RENTED: 'would be rented',
  KEPT: 'stays in use',
  LEFT: 'stays rented, unused',
  RELEASED: 'would be released',
};

const lineColumns = [
  {
    head: 'Capacity',
    cell: (row: Line) => (
      <span>
        <span className="strong">
          {row.count} × {row.sku === '' ? shapeName(row.shape) : row.sku}
        </span>
        <span className="sub">
          {[shapeName(row.shape), plural(row.gpuCount, 'GPU'), row.region].filter((each) => each !== '').join(', ')}
        </span>
      </span>
    ),
  },
  { head: 'What', cell: (row: Line) => effects[row.effect] },
  {
    head: 'An hour',
    right: true,
    cell: (row: Line) =>
      row.hourly === null ? <span className="faint">{noPrice}</span> : amount(row.hourly.amount, row.hourly.currency),
  },
];

const rateColumns = [
  { head: 'The app’s use', cell: (row: Rate) => <span className="strong">{row.dimension}</span> },
  {
    head: 'Price',
    cell: (row: Rate) =>
      row.price === null ? (
        <span className="faint">{noPrice}</span>
      ) : (
        <span>
          {row.price.tiers
            .map(
              (tier) => `${tier.price} ${row.price?.currency ?? ''}${tier.upTo === null ? '' : ` up to ${tier.upTo}`}`,
            )
            .join(', then ')}{' '}
          for {row.price.per === '1' ? `a ${row.unit}` : `${row.price.per} of ${row.unit}`}
        </span>
      ),
  },
];
