// The stand-in's root fields over its world.
import { costKeys, costMutations, costQueries } from './costs.mjs';
import { changeMutations, changeQueries, costOf } from './changes.mjs';
import { connection, correlation, id, past } from './kit.mjs';
import { endpointMutations } from './endpoints.mjs';
import { nodeMutations, nodeQueries } from './nodes.mjs';
import { makeReleases } from './releases.mjs';
import { triageQueries } from './triage.mjs';
import { usageKeys, usageQueries } from './usage.mjs';

const keys = [
  ...usageKeys,
  'allocation.create',
  'allocation.read',
  'allocation.release',
  'audit.read',
  'node.read',
  'node.manage',
  'source.read',
  'source.manage',
  'artifact.read',
  'artifact.publish',
  'artifact.promote',
  'artifact.quarantine',
  'manifest.read',
  'manifest.publish',
  'manifest.promote',
  'operation.read',
  ...costKeys,
  'operation.cancel',
  'operation.retry',
  ...['apps', 'scheduler'].flatMap((family) =>
    [
      'catalog.read',
      'instance.read',
      'instance.create',
      'instance.delete',
      'instance.update',
      'node.operate',
      'member.add',
      'member.remove',
      'member.replace',
      'member.recover',
      'queue.submit',
      'queue.read',
      'queue.cancel',
      'node.read',
      'member.exec',
    ].map((key) => `${family}.${key}`),
  ),
];
const ended = ['SUCCEEDED', 'FAILED', 'CANCELED'];

/** Query, mutation and subscription roots. */
export function makeRoots(world) {
  const find = (rows, wanted, what) =>
    rows.find((each) => each.id === wanted) ?? Promise.reject(world.fault('NOT_FOUND', `there is no such ${what}`));
  return { query: queries(world, find), mutation: mutations(world, find), subscription: subscriptions(world, find) };
}

function queries(world, find) {
  const within = (rows, projectId, statuses, field = 'status') =>
    rows.filter((each) => each.projectId === projectId && (statuses == null || statuses.includes(each[field])));
  const releases = makeReleases(world.apps, world.tenant);
  const has = (text, part) => part == null || text.toLowerCase().includes(part.toLowerCase());
  return {
    viewer: () => ({
      actor: world.actor,
      tenant: world.tenant,
      permissions: () => keys,
      projects: (args) => connection(world.projects, args),
      bindings: [
        {
          id: id('rb'),
          subjectId: world.actor.id,
          role: 'tenant_admin',
          tenantId: world.tenant.id,
          projectId: null,
          expiresAt: null,
          createdAt: past(500),
        },
      ],
    }),
    apps: ({ search, ...args }) =>
      connection(
        world.apps.filter((app) => has(app.slug, search) || has(app.displayName, search)),
        args,
      ),
    app: ({ slug }) =>
      world.apps.find((app) => app.slug === slug) ?? Promise.reject(world.fault('NOT_FOUND', 'there is no such app')),
    allocations: ({ projectId, statuses, ...args }) => connection(within(world.allocations, projectId, statuses), args),
    launchOptions: (args) => launchOptions(world, args),
    ...costQueries(world),
    planLaunchInstance: ({ input }) => planLaunch(world, input),
    planReleaseAllocation: ({ allocationId }) => planRelease(world, allocationId),
    explainPermission: ({ input: { permissionKey } }) => ({
      allowed: keys.includes(permissionKey),
      permissionKey,
      description: '',
      subject: world.actor,
      tenantId: world.tenant.id,
      projectId: world.projects[0].id,
      because: [],
      missing: [],
      askWhom: [world.actor],
    }),
    ...changeQueries(world),
    ...releases.query,
    ...nodeQueries(world),
    ...usageQueries(world),
    ...triageQueries(world),
    node: ({ id: wanted }) =>
      releases.node(wanted) ?? find([...world.nodes, ...world.allocations, ...world.operations], wanted, 'object'),
    instances: ({ projectId, filter, ...args }) =>
      connection(
        within(world.instances, projectId, filter?.statuses).filter((each) => has(each.name, filter?.search)),
        args,
      ),
    instance: ({ id: wanted }) => find(world.instances, wanted, 'instance'),
    operation: ({ id: wanted }) => find(world.operations, wanted, 'operation'),
    operations: ({ projectId, states, ...args }) =>
      connection(within(world.operations, projectId, states, 'state'), args),
    nodes: (args) => connection(world.nodes, args),
    searchAudit: ({ filter, ...args }) =>
      connection(
        world.audits.filter((row) => soughtBy(filter, row)),
        args,
      ),
  };
}

/** Whether an audit entry is among what is looked for, by the parts of the filter that the stand-in knows. */
function soughtBy({ actorKinds, actorId, objectId, permissionKey, allowed, breakGlass, correlationId }, row) {
  const fits = (wanted, is) => wanted == null || wanted === is;
  return (
    (actorKinds == null || actorKinds.includes(row.actor.kind)) &&
    fits(actorId, row.actor.id) &&
    fits(objectId, row.objectId) &&
    fits(permissionKey, row.permissionKey) &&
    fits(allowed, row.allowed) &&
    fits(breakGlass, row.breakGlass) &&
    fits(correlationId, row.correlationId)
  );
}

function planLaunch(world, input) {
  const verdict = (source) => ({ source, outcome: 'ALLOWED', code: null, reasons: [] });
  return {
    hash: 'f'.repeat(64),
    allowed: true,
    version: input.version ?? '1.0.0',
    members: [],
    verdicts: ['STATE', 'COMPATIBILITY', 'QUOTA', 'POLICY'].map(verdict),
    cost: {
      ...costOf(
        world.allocations.filter((each) => input.allocationIds.includes(each.id)).map((each) => [each, 'KEPT']),
      ),
      usage: [
        {
          dimension: 'jobs',
          unit: 'job',
          price: {
            id: 'prc_2',
            currency: 'EUR',
            per: '1',
            tiers: [
              { upTo: '1000', price: '0.01' },
              { upTo: null, price: '0.008' },
            ],
            minimum: '0',
            roundUpTo: '0',
          },
        },
        { dimension: 'tokens', unit: 'token', price: null },
      ],
    },
  };
}

function planRelease(world, wanted) {
  const allocation = world.allocations.find((each) => each.id === wanted);
  return {
    hash: 'e'.repeat(64),
    allocation,
    instance: null,
    allowed: true,
    code: null,
    reasons: [],
    cost: costOf([[allocation, 'RELEASED']]),
  };
}

function launchOptions(world, { projectId, appSlug }) {
  const manifest = world.apps.find((each) => each.slug === appSlug)?.activeManifest;
  if (manifest == null) throw world.fault('NOT_FOUND', 'there is no such app');
  const shapes = manifest.compatibility.requires_capacity_shape;
  const free = world.allocations.filter(
    (each) => each.projectId === projectId && each.status === 'READY' && each.instance === null,
  );
  return {
    manifest,
    entitled: true,
    versions: [{ version: manifest.version, stage: 'ACTIVE', chosen: true, reasons: [] }],
    allocations: free.map((allocation) => {
      const shape = allocation.shape.toLowerCase();
      const compatible = shapes.includes(shape);
      return {
        allocation,
        compatible,
        reasons: compatible
          ? []
          : [
              {
                code: 'SHAPE_UNSUPPORTED',
                message: `the app runs on ${shapes.join(' or ')}, and this is ${shape}`,
                path: '',
              },
            ],
      };
    }),
  };
}

function mutations(world, find) {
  const answers = new Map();
  /** The first answer for a repeated key. */
  const once =
    (make) =>
    ({ input }) => {
      if (!answers.has(input.idempotencyKey)) answers.set(input.idempotencyKey, make(input));
      return answers.get(input.idempotencyKey);
    };
  return {
    launchInstance: once((input) => world.launch(input)),
    ...changeMutations(world, once),
    ...costMutations(),
    ...nodeMutations(world, find),
    ...endpointMutations(world, find),
    setRepairPolicy: async ({ input: { instanceId, ...policy } }) => {
      const repair = { ...policy };
      delete repair.reason;
      return Object.assign(await find(world.instances, instanceId, 'instance'), { repair });
    },
    decommissionInstance: once((input) => world.decommission(input)),
    releaseAllocation: once((input) => world.release(input)),
    invokeAction: once((input) => invoke(world, input)),
    requestAllocation: once(({ shape, count, gpuCount, name, projectId }) => ({
      allocations: Array.from({ length: count }, (_, at) =>
        world.allocate({
          shape,
          gpuCount: shape === 'BAREMETAL' ? 4 : gpuCount,
          node: world.nodes[at % 2],
          name: name ?? `capacity-${world.allocations.length + 1}`,
          projectId,
        }),
      ),
    })),
  };
}

function invoke(world, { instanceId, action, input }) {
  const instance = world.instances.find((each) => each.id === instanceId);
  world.audit(instance.actions.find((each) => each.name === action).permissionKey, 'invokeAction', instanceId);
  return { action, output: actions[action](world, instance, input ?? {}), correlationId: correlation() };
}

/** What the apps' actions answer. */
const actions = {
  'queue.submit': (world, { jobs }, input) => {
    if (!input.script?.startsWith('#!'))
      throw world.fault('ADAPTER_REJECTED', 'the script must begin with #!', [
        { code: 'BAD_VALUE', message: 'must begin with #!', path: 'input.script' },
      ]);
    jobs.unshift({
      jobId: String(100 + jobs.length),
      name: input.name ?? 'job',
      state: 'RUNNING',
      user: 'root',
      nodes: input.nodes ?? 1,
      startedAt: past(0),
      output: 'node-a\n',
    });
    return { jobId: jobs[0].jobId, state: 'PENDING' };
  },
  'queue.list': (_, { jobs }, { jobId }) => {
    if (jobId === undefined) return { jobs };
    const job = jobs.find((each) => each.jobId === jobId);
    if (job.state === 'RUNNING') job.output += `step ${job.output.split('\n').length}\n`; // it grows as it is looked at
    return { jobs: [job], output: job.output };
  },
  'queue.cancel': cancelJob,
  echo: (_, { rows }, { text }) => ({ text, member: rows[0]?.id }),
};

/** Cancels a job; what waits for it waits no longer. */
function cancelJob(world, instance, { jobId }) {
  for (const job of instance.jobs) if (job.jobId === jobId) job.state = 'CANCELED';
  for (const op of world.operations.filter((each) => each.instanceId === instance.id)) {
    op.waitsFor = op.waitsFor.filter((work) => work.workId !== jobId);
    if (op.waitsFor.length === 0) op.blockers = op.blockers.filter((each) => each.code !== 'WORK_RUNNING');
  }
  return { jobId, canceled: true };
}

function subscriptions(world, find) {
  return {
    instanceTimeline: async ({ instanceId, after }) => {
      const instance = await find(world.instances, instanceId, 'instance');
      return instance.log.follow(after == null ? 0 : Number(after), (event) => ({ instanceTimeline: event }));
    },
    projectActivity: ({ after }) =>
      world.activity.follow(after == null ? world.activity.items.length : Number(after) + 1, (event) => ({
        projectActivity: event,
      })),
    operationProgress: async function* ({ operationId }) {
      const { log } = await find(world.operations, operationId, 'operation');
      for await (const state of log.follow(log.items.length - 1, (each) => each)) {
        yield { operationProgress: state };
        if (ended.includes(state.state)) return;
      }
    },
  };
}
