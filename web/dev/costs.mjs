// What the stand-in says of costs: fixed sums, and budgets that are kept in memory.
import { past } from './kit.mjs';

/** The keys of the viewer. */
export const costKeys = ['billing.read', 'budget.manage'];

const first = (projectId) => ({
  id: 'bud_1',
  tenantId: 'ten_1',
  projectId,
  scope: 'PROJECT',
  targetId: projectId,
  currency: 'EUR',
  amount: '6000',
  span: 'MONTH',
  horizonSeconds: 3600,
  thresholds: [50, 80, 100],
  atLimit: 'DECOMMISSION',
  spent: '1284.4',
  spentAt: past(1),
  held: '19.2',
  left: '4696.4',
  hourly: '19.2',
  unpriced: 0,
  reached: 0,
  limitAt: null,
  largestOvershoot: '10.4',
  trouble: '',
  reason: 'training',
  createdAt: past(9_000),
  updatedAt: past(9_000),
});

let kept;

/** When this month begins, or one so many later. */
const monthStart = (later) => new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() + later, 1));

const budgetsOf = (projectId) => (kept ??= [first(projectId)]);

/** The queries. */
export const costQueries = (world) => ({
  costSummary: () => ({
    currency: 'EUR',
    from: monthStart(0).toISOString(),
    to: monthStart(1).toISOString(),
    spent: '1284.4',
    hourly: '19.2',
    forecast: '5892.4',
    unpriced: 1,
  }),
  costs: ({ by }) => sharesBy(world, by),
  budgets: ({ projectId }) => budgetsOf(projectId),
});

/** The mutations: a budget takes the place of the one that there is. */
export const costMutations = () => ({
  setBudget: ({ input }) => {
    const made = { ...first(null), ...input, id: `bud_${Date.now()}`, left: input.amount, spent: '0', held: '0' };
    kept = [...(kept ?? []).filter((each) => each.targetId !== input.targetId), made];
    return made;
  },
  removeBudget: ({ budgetId }) => {
    const gone = kept?.find((each) => each.id === budgetId);
    kept = kept?.filter((each) => each !== gone);
    return gone;
  },
});

function sharesBy(world, by) {
  const share = (key, name, amount) => ({ key, name, currency: 'EUR', amount });
  const days = Array.from({ length: new Date().getUTCDate() }, (_, at) =>
    share(
      new Date(monthStart(0).getTime() + at * 86_400_000).toISOString().slice(0, 10),
      '',
      String(30 + ((at * 17) % 70)),
    ),
  ).filter((_, at) => at % 6 !== 3);
  return (
    {
      DAY: days,
      APP: [share('slurm', 'slurm', '980.4'), share('', '', '304')],
      PERSON: [share('usr_1', 'Dana Admin', '1100'), share('sva_1', 'cluster-automation', '184.4')],
      INSTANCE: [
        share(world.instances[0]?.id ?? 'ins_1', world.instances[0]?.name ?? 'one', '980.4'),
        share('', '', '304'),
      ],
      METER: [share('node_seconds', 'node_seconds', '1200'), share('jobs', 'jobs', '84.4')],
      TENANT: [share('ten_1', 'Demo', '1284.4'), share('ten_2', 'Acme', '310.12')],
      PLATFORM_BORNE: [share('FAILED_ADD', 'FAILED_ADD', '3.2'), share('NODE_SILENT', 'NODE_SILENT', '0.45')],
    }[by] ?? []
  );
}
