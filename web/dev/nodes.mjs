// The stand-in's fleet: what agents find on nodes, who lives there, and the operators' verbs.
import { now, past } from './kit.mjs';

const checks = [
  ['disk', 'has space'],
  ['gpu', 'every GPU answers'],
  ['runtime', 'starts containers'],
];

/** What is said of a node besides its hardware; the second node has a GPU that fails. */
export function standingOf(at) {
  const conditions = checks.map(([name, message]) => ({
    name,
    state: 'GOOD',
    message,
    since: past(400),
    effect: 'NONE',
  }));
  if (at === 1)
    Object.assign(conditions[1], {
      state: 'BAD',
      message: 'GPU 3 reports an uncorrectable memory error',
      since: past(12),
      effect: 'NO_NEW_MEMBERS',
    });
  return {
    cordoned: false,
    cordonReason: '',
    cordonedAt: null,
    conditions,
    drain: null,
    bootedAt: past(4000),
    retiredAt: null,
    lost: false,
  };
}

const troubled = (node) =>
  node.status !== 'ONLINE' || node.cordoned || node.conditions.some(({ effect }) => effect !== 'NONE');
const sum = (rows, count) => rows.reduce((total, row) => total + count(row), 0);

/** The reads about the fleet. */
export function nodeQueries(world) {
  return { fleet: () => fleet(world), nodeMembers: ({ nodeId }) => lodgers(world, nodeId) };
}

function fleet({ nodes, allocations, operations }) {
  const taking = nodes.filter((node) => !troubled(node));
  const held = allocations.filter(({ status }) => status === 'READY');
  const rented = (node) =>
    sum(
      held.filter((each) => each.node?.id === node.id),
      ({ gpuCount }) => gpuCount,
    );
  return {
    capacity: [
      {
        region: nodes[0].region,
        sku: nodes[0].sku,
        nodes: nodes.length,
        online: nodes.filter(({ status }) => status === 'ONLINE').length,
        taking: taking.length,
        freeNodes: taking.filter((node) => rented(node) === 0).length,
        gpus: sum(nodes, ({ gpus }) => gpus),
        gpusRented: sum(nodes, rented),
        gpusFree: sum(taking, (node) => node.gpus - rented(node)),
      },
    ],
    troubled: nodes.filter(troubled),
    stuck: operations.filter(({ blockers }) => blockers?.length > 0),
  };
}

function lodgers({ instances, tenant, projects, operations }, nodeId) {
  return instances.flatMap((instance) =>
    instance.rows
      .filter((member) => member.node?.id === nodeId)
      .map((member) => ({
        memberId: member.id,
        componentKey: member.componentKey,
        index: member.index,
        status: member.status,
        health: member.health,
        instanceId: instance.id,
        instanceName: instance.name,
        instanceStatus: instance.status,
        appSlug: instance.appSlug,
        tenant: tenant.slug,
        project: projects.find(({ id }) => id === instance.projectId).slug,
        allocationId: member.allocation?.id ?? '',
        operation: operations.find((each) => each.memberId === member.id && each.endedAt === null) ?? null,
        refusal: null,
      })),
  );
}

/** The operators' verbs on nodes; a drain never ends here. */
export function nodeMutations(world, find) {
  const on =
    (change) =>
    ({ input }) =>
      Object.assign(find(world.nodes, input.nodeId, 'node'), change(input));
  return {
    cordonNode: on(({ reason }) => ({ cordoned: true, cordonReason: reason ?? '', cordonedAt: now() })),
    uncordonNode: on(() => ({ cordoned: false, cordonReason: '', cordonedAt: null, drain: null })),
    drainNode: on(({ reason, force, deadlineSeconds }) => ({
      cordoned: true,
      cordonReason: reason ?? '',
      cordonedAt: now(),
      drain: {
        since: now(),
        by: world.actor.name,
        reason: reason ?? '',
        deadlineSeconds: deadlineSeconds ?? 3600,
        force: force ?? false,
        ending: false,
      },
    })),
    retireNode: on(({ lost }) => ({ status: 'RETIRED', retiredAt: now(), lost: lost ?? false })),
  };
}
