// The stand-in's member and instance changes: plans, the changes themselves, and the orphans they leave.
import { createHash } from 'node:crypto';
import { connection, id, now, past } from './kit.mjs';

/** What every operation has besides its progress. */
export const operationFields = () => ({
  targetIds: [],
  force: false,
  onDeadline: 'FAIL',
  forcedAt: null,
  blockers: [],
  waitsFor: [],
  cancelRequestedAt: null,
  cancelRequester: '',
  cancelMessage: '',
  retryOf: null,
});

/** What every member has besides its state. */
export const memberFields = () => ({ labels: { zone: 'a' } });

/** Adds an instance's fields that follow from others. */
export function readableChanges(world, instance) {
  Object.assign(instance, {
    drift: [],
    observedAt: now(),
    generationRows: [],
    generation: () => instance.present ?? instance.generationRows[0]?.number ?? 1,
    generations: () => [...instance.generationRows].sort((a, b) => b.number - a.number),
    blockers: () =>
      world.operations.find((op) => op.instanceId === instance.id && op.endedAt === null && op.blockers.length > 0)
        ?.blockers ?? [],
    orphans: () => world.orphans.filter((each) => each.instanceId === instance.id && each.resolvedAt === null),
  });
}

/** One orphan of the workload that is there from the start. */
export function seedOrphan(world) {
  const [instance] = world.instances;
  world.orphans.push({
    __typename: 'Orphan',
    id: id('orp'),
    kind: 'NODE_RESIDUE',
    projectId: instance.projectId,
    instanceId: instance.id,
    operation: world.operations[0],
    member: null,
    node: world.nodes[2],
    allocation: world.allocations[0],
    owner: 'node',
    message: 'the node did not answer when the member was removed by force: its processes may still run',
    ageSeconds: 7_860,
    hourlyCost: { currency: 'EUR', amount: '2.50' },
    costSoFar: { currency: 'EUR', amount: '5.458333' },
    attempts: 9,
    lastError: 'the agent of node-c is not connected',
    nextTryAt: past(-1),
    createdAt: past(131),
    resolvedAt: null,
    resolution: '',
  });
}

const memberOf = (world, wanted) =>
  world.instances.flatMap((each) => each.rows).find((each) => each.id === wanted) ??
  Promise.reject(world.fault('NOT_FOUND', 'there is no such member'));
const instanceOf = (world, wanted) => world.instances.find((each) => each.id === wanted);
const onlyMembers = { DRAIN: 'MEMBER_DRAIN', REMOVE: 'MEMBER_REMOVE', REPLACE: 'MEMBER_REPLACE' };

/** What runs on a member: its workload's jobs. */
function workOn(world, member) {
  return instanceOf(world, member.instanceId)
    .jobs.filter((job) => job.state === 'RUNNING')
    .map((job) => ({
      kind: 'job',
      id: `${instanceOf(world, member.instanceId).id}/${job.jobId}`,
      workId: job.jobId,
      name: job.name,
      memberId: member.id,
      owner: job.user,
      since: job.startedAt,
      message: `${job.nodes} node${job.nodes === 1 ? '' : 's'}`,
    }));
}

/** What an hour costs: 9.60 for a whole node of a SKU; what has no SKU has no price. */
export function costOf(capacity) {
  const lines = capacity
    .filter(([row]) => row != null)
    .map(([row, effect]) => ({
      effect,
      count: 1,
      shape: row.shape ?? 'BAREMETAL',
      gpuCount: row.gpuCount ?? 4,
      sku: row.sku ?? '',
      region: row.region ?? '',
      priceId: row.sku ? 'prc_1' : null,
      hourly: row.sku ? { currency: 'EUR', amount: '9.600000' } : null,
    }));
  const sum = (...effects) =>
    lines.filter((each) => effects.includes(each.effect) && each.hourly !== null).length * 9.6;
  const [before, after, left] = [sum('KEPT', 'LEFT', 'RELEASED'), sum('KEPT', 'LEFT', 'RENTED'), sum('LEFT')];
  const text = (value) => String(Math.round(value * 100) / 100);
  const totals = lines.some((each) => each.hourly !== null)
    ? [{ currency: 'EUR', before: text(before), after: text(after), delta: text(after - before), left: text(left) }]
    : [];
  return { totals, unpriced: lines.filter((each) => each.hourly === null).length, capacity: lines, usage: [] };
}

/** The allocations of the members that a change touches, each once, with what becomes of it. */
function capacityOf(members) {
  const seen = new Map();
  for (const { allocation, action } of members)
    if (allocation != null && !seen.has(allocation.id))
      seen.set(allocation.id, [allocation, action === 'REMOVE' ? 'LEFT' : 'KEPT']);
  return [...seen.values()];
}

function plan(
  world,
  instance,
  kind,
  { members, lost = [], reversible, reversal, refusal, force = false, change = {} },
) {
  const rest = { revision: instance.revision, kind, members: members.map((row) => row.member?.id), change };
  const verdict = (source, outcome = 'ALLOWED', reasons = []) => ({ source, outcome, reasons });
  return {
    hash: createHash('sha256').update(JSON.stringify(rest)).digest('hex'),
    kind,
    instance,
    allowed: refusal === undefined,
    members,
    workLost: lost,
    workLostTotal: lost.length,
    reversible,
    reversal,
    change,
    force,
    deadlineSeconds: 900,
    onDeadline: 'FAIL',
    workAtRisk: [],
    workAtRiskTotal: null,
    keepFailed: false,
    impact: {
      instanceId: instance.id,
      controlPlaneScope: 'PROJECT',
      projects: [],
      attachedTotal: 0,
      membersTotal: members.length,
      openOperations: 0,
    },
    cost: costOf(capacityOf(members)),
    supersedes: world.operations.filter(
      (op) => op.endedAt === null && op.instanceId === instance.id && kind !== 'MEMBERS_ADD',
    ),
    verdicts: [
      verdict('STATE'),
      verdict(
        'COMPATIBILITY',
        refusal === undefined ? 'ALLOWED' : 'REFUSED',
        refusal === undefined ? [] : [{ code: 'FAILED_PRECONDITION', message: refusal, path: 'input.memberId' }],
      ),
      verdict('QUOTA'),
      verdict('POLICY'),
      instance.appSlug === 'notebook'
        ? verdict('ADAPTER', 'UNKNOWN', [{ code: 'UNAVAILABLE', message: 'the adapter does not plan', path: '' }])
        : verdict('ADAPTER'),
    ],
  };
}

const touched = (member, action) => ({
  member,
  componentKey: member.componentKey,
  action,
  allocation: member.allocation,
  reachable: member.node?.status !== 'OFFLINE',
  profile: member.profile,
  isolationClass: member.isolationClass,
});

async function planMember(world, { memberId, force }, action) {
  const member = await memberOf(world, memberId);
  const instance = instanceOf(world, member.instanceId);
  const peers = instance.rows.filter((each) => each.componentKey === member.componentKey && each.status === 'ACTIVE');
  const bounds = instance.manifest.components.find((each) => each.key === member.componentKey);
  const added =
    action === 'REPLACE'
      ? [
          {
            member: null,
            componentKey: member.componentKey,
            action: 'ADD',
            allocation: member.allocation,
            reachable: true,
            profile: 'SERVICE',
            isolationClass: 'CONTAINER',
          },
        ]
      : [];
  return plan(world, instance, onlyMembers[action], {
    members: [touched(member, action), ...added],
    lost: force ? workOn(world, member) : [],
    force: force === true,
    reversible: action === 'DRAIN',
    change: action === 'REMOVE' ? { counts: { [member.componentKey]: peers.length - 1 } } : {},
    reversal: action === 'DRAIN' ? 'put the member back to work' : 'what is stored on the member is deleted with it',
    refusal:
      action === 'REMOVE' && peers.length <= bounds.min
        ? `the app needs ${bounds.min} ${bounds.displayName.toLowerCase()} at least`
        : undefined,
  });
}

function planAdd(world, { instanceId, componentKey, count, allocationIds }) {
  const instance = instanceOf(world, instanceId);
  const places = world.allocations.filter((each) => allocationIds?.includes(each.id));
  const members = Array.from({ length: count }, (_, at) => ({
    member: null,
    componentKey,
    action: 'ADD',
    allocation: places[at % places.length] ?? null,
    reachable: true,
    profile: 'SERVICE',
    isolationClass: 'CONTAINER',
  }));
  return plan(world, instance, 'MEMBERS_ADD', {
    members,
    reversible: true,
    reversal: 'remove the members',
    change: { counts: { [componentKey]: instance.components.find((each) => each.key === componentKey).count + count } },
  });
}

function planInstance(world, { instanceId, force, ...input }, kind) {
  const instance = instanceOf(world, instanceId);
  const live = instance.rows.filter((each) => each.status !== 'REMOVED');
  const end = kind === 'INSTANCE_DECOMMISSION';
  return plan(world, instance, kind, {
    members: live.slice(0, 256).map((each) => touched(each, end ? 'REMOVE' : 'CHANGE')),
    lost: end && live[0] !== undefined ? workOn(world, live[0]) : [],
    reversible: !end,
    change: end ? {} : input,
    reversal: end
      ? 'what runs and what is stored on the members is deleted'
      : `roll back to generation ${instance.generation()}`,
    refusal: force === undefined && input.version === '9.9.9' ? 'there is no such version' : undefined,
  });
}

/** The queries about changes. */
export function changeQueries(world) {
  return {
    member: ({ id: wanted }) => memberOf(world, wanted),
    planAddMembers: ({ input }) => planAdd(world, input),
    planDrainMember: ({ input }) => planMember(world, input, 'DRAIN'),
    planRemoveMember: ({ input }) => planMember(world, input, 'REMOVE'),
    planReplaceMember: ({ input }) => planMember(world, input, 'REPLACE'),
    planUpgradeInstance: ({ input }) => planInstance(world, input, 'INSTANCE_UPGRADE'),
    planRollbackInstance: ({ input }) => planInstance(world, input, 'INSTANCE_ROLLBACK'),
    planDecommissionInstance: ({ input }) => planInstance(world, input, 'INSTANCE_DECOMMISSION'),
    orphans: ({ projectId, resolved, ...args }) =>
      connection(
        world.orphans.filter((each) => each.projectId === projectId && (resolved || each.resolvedAt === null)),
        args,
      ),
    skuPrices: () => [],
  };
}

const simple = [['wait_for_adapter', 'The adapter does it']];
const leaving = [
  ['dispatch', 'Handing over to the adapter'],
  ['wait_for_adapter', 'Its work ends'],
  ['teardown', 'The node takes it down'],
  ['residue', 'The agent checks what is left'],
];
const joining = [
  ['bind_nodes', 'Binding members to nodes'],
  ['dispatch', 'Handing over to the adapter'],
  ['wait_for_adapter', 'The members join'],
  ['probe', 'The agents probe readiness'],
];

function begin(world, kind, instance, members, input, steps, done) {
  const op = world.operation(kind, { instance }, input.reason, steps, input);
  Object.assign(op, {
    targetIds: members.map((each) => each.id),
    force: input.force ?? false,
    onDeadline: input.onDeadline ?? 'FAIL',
  });
  for (const each of members) each.lastOperation = op;
  world.audit(
    `${instance.permissionFamily}.node.operate`,
    kind.toLowerCase(),
    members[0]?.id ?? instance.id,
    input.reason,
  );
  world.run(op, instance, done);
  return op;
}

function setState(world, member, op, state, type, message) {
  Object.assign(member, state, { updatedAt: now() });
  world.emit(instanceOf(world, member.instanceId), `apps.instance.${type}`, message, op, { memberId: member.id });
}

/** Waits for the jobs of a drained member, which end by themselves; the operation says what it waits for. */
function waitForWork(world, member, op) {
  const work = workOn(world, member);
  if (work.length === 0) return;
  op.waitsFor = work;
  op.blockers = [
    {
      code: 'WORK_RUNNING',
      message: `${work.length === 1 ? '1 job still runs' : `${work.length} jobs still run`} on ${member.componentKey} ${member.index}`,
      owner: 'user',
      subject: member.id,
      since: now(),
      nextRetryAt: past(-0.2),
      permissionKey: 'scheduler.queue.cancel',
    },
    {
      code: 'ADAPTER_WORKING',
      message: 'the adapter reports when the last one has ended',
      owner: 'adapter',
      subject: 'batch-queue-controller',
      since: now(),
      nextRetryAt: null,
      permissionKey: '',
    },
  ];
}

function insist(world, found, planHash) {
  if (planHash != null && found.hash !== planHash) {
    throw world.fault('PLAN_STALE', 'something that the plan covers has changed', [
      { code: 'PLAN_STALE', message: 'the workload has changed since the plan was created', path: 'input.planHash' },
    ]);
  }
  if (!found.allowed)
    throw world.fault(
      'FAILED_PRECONDITION',
      found.verdicts.find((each) => each.outcome === 'REFUSED').reasons[0].message,
    );
}

async function drain(world, input) {
  const member = await memberOf(world, input.memberId);
  insist(world, await planMember(world, input, 'DRAIN'), input.planHash);
  const op = begin(
    world,
    'MEMBER_DRAIN',
    instanceOf(world, member.instanceId),
    [member],
    input,
    [
      ['dispatch', 'Handing over to the adapter'],
      ['wait_for_adapter', 'It waits for running work'],
      ['check', 'The adapter shows that nothing runs'],
    ],
    () => {
      setState(
        world,
        member,
        op,
        { status: 'DRAINED' },
        'member_drained',
        `${member.componentKey} ${member.index} is drained`,
      );
    },
  );
  setState(
    world,
    member,
    op,
    { status: 'DRAINING' },
    'member_draining',
    `${member.componentKey} ${member.index} takes no new work`,
  );
  if (!input.force) waitForWork(world, member, op);
  return { member, operation: op };
}

async function remove(world, input) {
  const member = await memberOf(world, input.memberId);
  insist(world, await planMember(world, input, 'REMOVE'), input.planHash);
  const instance = instanceOf(world, member.instanceId);
  const op = begin(world, 'MEMBER_REMOVE', instance, [member], input, leaving, () => {
    if (input.force) op.outcome = 'FORCED';
    setState(
      world,
      member,
      op,
      { status: 'REMOVED', health: 'UNKNOWN' },
      'member_removed',
      `${member.componentKey} ${member.index} is removed, nothing is left on ${member.node?.name}`,
    );
  });
  instance.components.find((each) => each.key === member.componentKey).count--;
  setState(
    world,
    member,
    op,
    { status: 'REMOVING' },
    'member_removing',
    `${member.componentKey} ${member.index} leaves`,
  );
  return { member, operation: op };
}

function bring(world, instance, componentKey, count, allocations) {
  const next =
    Math.max(-1, ...instance.rows.filter((each) => each.componentKey === componentKey).map((each) => each.index)) + 1;
  const made = Array.from({ length: count }, (_, at) =>
    world.member(instance, componentKey, next + at, allocations[at % allocations.length]),
  );
  instance.rows.push(...made);
  for (const each of allocations) each.instance = instance;
  return made;
}

function come(world, op, members) {
  for (const each of members)
    setState(
      world,
      each,
      op,
      { status: 'ACTIVE', health: 'HEALTHY', adapterDetail: { ready: true } },
      'member_added',
      `${each.componentKey} ${each.index} joined on ${each.node?.name ?? 'a node'}`,
    );
}

function add(world, input) {
  insist(world, planAdd(world, input), input.planHash);
  const instance = instanceOf(world, input.instanceId);
  const bounds = instance.manifest.components.find((each) => each.key === input.componentKey);
  const component = instance.components.find((each) => each.key === input.componentKey);
  if (component.count + input.count > bounds.max)
    throw world.fault('INVALID_ARGUMENT', 'too many members', [
      { code: 'INVALID_ARGUMENT', message: `at most ${bounds.max} are allowed`, path: 'input.count' },
    ]);
  const allocations =
    input.intent == null
      ? world.allocations.filter((each) => input.allocationIds.includes(each.id))
      : Array.from({ length: input.count }, (_, at) =>
          world.allocate({
            shape: input.intent.shape,
            gpuCount: input.intent.gpuCount ?? 4,
            node: world.nodes[at % 2],
            name: `capacity-${world.allocations.length + 1}`,
          }),
        );
  component.count += input.count;
  const members = bring(world, instance, input.componentKey, input.count, allocations);
  const op = begin(world, 'MEMBERS_ADD', instance, members, input, joining, () => come(world, op, members));
  for (const each of members)
    setState(
      world,
      each,
      op,
      { status: 'JOINING' },
      'member_joining',
      `${each.componentKey} ${each.index} is on its way`,
    );
  return { instance, members, operation: op };
}

async function replace(world, input) {
  const member = await memberOf(world, input.memberId);
  insist(world, await planMember(world, input, 'REPLACE'), input.planHash);
  const instance = instanceOf(world, member.instanceId);
  const places = world.allocations.filter((each) => each.id === input.allocationId);
  const [replacement] = bring(
    world,
    instance,
    member.componentKey,
    1,
    places.length > 0 ? places : [member.allocation],
  );
  const op = begin(world, 'MEMBER_REPLACE', instance, [member], input, [...joining, ...leaving], () => {
    come(world, op, [replacement]);
    setState(
      world,
      member,
      op,
      { status: 'REMOVED', health: 'UNKNOWN' },
      'member_removed',
      `${member.componentKey} ${member.index} was replaced`,
    );
  });
  setState(
    world,
    replacement,
    op,
    { status: 'JOINING' },
    'member_joining',
    `${replacement.componentKey} ${replacement.index} is on its way`,
  );
  return { member, replacement, operation: op };
}

function quick(world, kind, type, change) {
  return async (input) => {
    const member = await memberOf(world, input.memberId);
    const op = begin(world, kind, instanceOf(world, member.instanceId), [member], input, simple, () =>
      setState(
        world,
        member,
        op,
        change(input),
        type,
        `${member.componentKey} ${member.index}: ${type.replaceAll('_', ' ')}`,
      ),
    );
    return { member, operation: op };
  };
}

function changeInstance(world, input, kind) {
  insist(world, planInstance(world, input, kind), input.planHash);
  const instance = instanceOf(world, input.instanceId);
  const earlier = instance.generationRows.find((each) => each.number === input.generation);
  const op = begin(
    world,
    kind,
    instance,
    [],
    input,
    [
      ['dispatch', 'Handing over to the adapter'],
      ['wait_for_adapter', 'The members are changed one after another'],
      ['probe', 'The agents probe readiness'],
    ],
    () => {
      Object.assign(instance, {
        appVersion: earlier?.appVersion ?? input.version ?? instance.appVersion,
        config: earlier?.config ?? input.config ?? instance.config,
      });
      const number = Math.max(...instance.generationRows.map((each) => each.number)) + 1;
      instance.generationRows.push(world.generation(number, instance));
      instance.present = number;
      world.emit(instance, 'apps.instance.upgraded', `${instance.name} runs ${instance.appVersion}`, op);
    },
  );
  return { instance, operation: op };
}

function cancel(world, { operationId }) {
  const op = world.operations.find((each) => each.id === operationId);
  Object.assign(op, { state: 'CANCELING', cancelRequestedAt: now(), cancelRequester: world.actor.name });
  setTimeout(() => {
    if (op.endedAt !== null) return;
    const late = op.percent >= 50;
    Object.assign(
      op,
      late
        ? { state: 'RUNNING', cancelMessage: 'too late: the members are being taken down already' }
        : { state: 'CANCELED', endedAt: now(), cancelMessage: 'stopped; nothing was changed', message: 'Canceled' },
    );
    op.log.push({ ...op, steps: op.steps.map((step) => ({ ...step })) });
  }, 1_500);
  return { operation: op };
}

/** The verbs. */
export function changeMutations(world, once) {
  return {
    addMembers: once((input) => add(world, input)),
    drainMember: once((input) => drain(world, input)),
    removeMember: once((input) => remove(world, input)),
    replaceMember: once((input) => replace(world, input)),
    cordonMember: once(quick(world, 'MEMBER_CORDON', 'member_cordoned', () => ({ cordoned: true }))),
    uncordonMember: once(
      quick(world, 'MEMBER_UNCORDON', 'member_uncordoned', () => ({ cordoned: false, status: 'ACTIVE' })),
    ),
    labelMember: once(quick(world, 'MEMBER_LABEL', 'member_labelled', ({ labels }) => ({ labels }))),
    recoverMember: once(
      quick(world, 'MEMBER_RECOVER', 'member_recovered', () => ({ status: 'ACTIVE', health: 'HEALTHY' })),
    ),
    upgradeInstance: once((input) => changeInstance(world, input, 'INSTANCE_UPGRADE')),
    rollbackInstance: once((input) => changeInstance(world, input, 'INSTANCE_ROLLBACK')),
    cancelOperation: ({ input }) => cancel(world, input),
    retryOperation: once((input) => {
      const before = world.operations.find((each) => each.id === input.operationId);
      const op = world.operation(
        before.kind,
        { instance: before.instance },
        input.reason,
        before.steps.map((step, at) => [step.name, before.words[at]]),
        before.desiredChange,
      );
      op.retryOf = before.id;
      world.run(op, before.instance, () => undefined);
      return { operation: op };
    }),
    retryOrphan: ({ orphanId }) => {
      const orphan = world.orphans.find((each) => each.id === orphanId);
      return Object.assign(orphan, { attempts: orphan.attempts + 1, nextTryAt: past(-1) });
    },
  };
}
