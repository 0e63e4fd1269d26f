// The stand-in's data: a tenant with two projects, a small catalog, nodes, allocations, and workloads whose
// operations move on by timers.
import { randomBytes } from 'node:crypto';
import { appList } from './apps.mjs';

const id = (prefix) => `${prefix}_${randomBytes(13).toString('hex')}`;
const now = () => new Date().toISOString();
const past = (minutes) => new Date(Date.now() - minutes * 60_000).toISOString();

/** A connection over rows; cursors are positions. */
function connection(rows, { first = 50, after } = {}) {
  const start = after == null ? 0 : Number(after) + 1;
  const page = rows.slice(start, start + first);
  const edges = page.map((node, at) => ({ cursor: String(start + at), node }));
  return {
    edges,
    pageInfo: {
      hasNextPage: start + first < rows.length, hasPreviousPage: start > 0,
      startCursor: edges[0]?.cursor ?? null, endCursor: edges.at(-1)?.cursor ?? null,
    },
  };
}

/** A log that can be followed from a position: replays, then waits for what comes. */
function makeLog() {
  const items = [];
  let wake = new Set();
  return {
    items,
    push(item) {
      items.push(item);
      for (const resolve of wake) resolve();
      wake = new Set();
    },
    async *follow(position, pick) {
      for (let at = position; ; at++) {
        while (at >= items.length) await new Promise((resolve) => wake.add(resolve));
        yield pick(items[at], at);
      }
    },
  };
}

const keys = [
  'allocation.create', 'allocation.read', 'allocation.release', 'audit.read', 'node.read', 'operation.read',
  ...['apps', 'scheduler'].flatMap((family) => ['catalog.read', 'instance.read', 'instance.create', 'instance.delete', 'queue.submit', 'queue.read', 'queue.cancel', 'node.read'].map((key) => `${family}.${key}`)),
];

/** Builds the world; fault makes an error of the envelope. */
export function makeWorld(fault) {
  const actor = { kind: 'USER', id: id('usr'), name: 'Ada Novak' };
  const tenant = { __typename: 'Tenant', id: id('ten'), slug: 'northwind', displayName: 'Northwind Labs', createdAt: past(9000) };
  const projects = ['Vision research', 'Genomics'].map((displayName) => ({ __typename: 'Project', id: id('prj'), tenantId: tenant.id, slug: displayName.toLowerCase().replace(' ', '-'), displayName, createdAt: past(8000) }));
  const [project] = projects;
  const apps = appList(id, past, connection);
  const nodes = ['node-a', 'node-b', 'node-c'].map((name, at) => ({
    __typename: 'ComputeNode', id: id('nod'), name, address: `10.77.0.${at + 1}`, status: at === 2 ? 'OFFLINE' : 'ONLINE', region: 'eu-central', sku: 'lab-4x',
    cpus: 64, memoryMiB: 262144, gpus: 4, gpuModel: 'H100', gpusSimulated: true, isolation: 'NAMESPACE', agentVersion: '0.1.0', lastSeenAt: past(at === 2 ? 90 : 0), createdAt: past(5000),
  }));
  const allocations = [];
  const instances = [];
  const operations = [];
  const audits = [];
  const activity = makeLog();
  const used = new Map();

  const audit = (permissionKey, action, objectId, reason = '', refusal = '') => audits.unshift({
    __typename: 'AuditEntry', id: id('aud'), actor, permissionKey, action, allowed: refusal === '', objectId, projectId: project.id, before: null,
    after: { state: 'accepted' }, reason: reason ?? '', code: refusal, repeats: 1, correlationId: `c-${randomBytes(6).toString('hex')}`, origin: '127.0.0.1', createdAt: now(),
  });

  const allocation = (shape, gpuCount, node, name, projectId = project.id) => {
    const made = {
      __typename: 'Allocation', id: id('alc'), projectId, name, shape, gpuCount, sku: 'lab-4x', region: 'eu-central', status: 'READY', node,
      instance: null, schedulerType: '', integrationMetadata: null, releaseOperation: null, createdAt: now(), releasedAt: null,
    };
    allocations.unshift(made);
    return made;
  };
  allocation('BAREMETAL', 4, nodes[0], 'bench-rack');
  allocation('GPU_SLICE', 2, nodes[1], 'spare-slice');
  allocation('GPU_SLICE', 1, nodes[1], 'notebook-slice');

  const operation = (kind, target, reason, steps, desiredChange) => {
    const made = {
      __typename: 'Operation', id: id('op'), kind, state: 'PENDING', outcome: null, projectId: project.id, instanceId: target.instance?.id ?? null, instance: target.instance ?? null,
      allocationId: target.allocation?.id ?? null, phase: '', percent: 0, message: 'Waits for a worker', requester: actor, reason: reason ?? '', correlationId: `c-${randomBytes(8).toString('hex')}`,
      desiredChange, evidence: null, error: null, dispatchAttempt: 1, claimEpoch: 1, deadline: new Date(Date.now() + 900_000).toISOString(), createdAt: now(), startedAt: null, endedAt: null,
      steps: steps.map((name, ordinal) => ({ id: id('stp'), name, ordinal, state: 'PENDING', attempt: 0, message: '', evidence: null, startedAt: null, endedAt: null })),
      log: makeLog(),
    };
    operations.unshift(made);
    made.log.push({ ...made });
    return made;
  };

  const emit = (instance, type, message, op, payload = {}) => {
    const seq = instance.log.items.length + 1;
    const event = {
      __typename: 'Event', id: id('evt'), cursor: String(seq), seq, type, orgId: tenant.id, projectId: instance.projectId, appSlug: instance.appSlug, appInstanceId: instance.id,
      operationId: op?.id ?? null, memberId: null, message, payload, correlationId: instance.correlationId, occurredAt: now(),
    };
    instance.revision = seq;
    instance.updatedAt = event.occurredAt;
    instance.log.push(event);
    activity.push({ ...event, cursor: String(activity.items.length) });
  };

  /** Runs the steps one after another, a second each, then calls back. */
  const run = (op, instance, words, done) => {
    const publish = () => op.log.push({ ...op, steps: op.steps.map((step) => ({ ...step })) });
    const tick = (at) => {
      const before = op.steps[at - 1];
      if (before !== undefined) Object.assign(before, { state: 'SUCCEEDED', endedAt: now() });
      if (at === op.steps.length) {
        Object.assign(op, { state: 'SUCCEEDED', outcome: 'NORMAL', percent: 100, endedAt: now(), message: 'Done', evidence: { probes: [{ name: 'ready', ok: true }], residue: { processes: 0, mounts: 0, files: 0 } } });
        done();
        publish();
        return;
      }
      Object.assign(op, { state: 'RUNNING', startedAt: op.startedAt ?? now(), percent: Math.round((100 * at) / op.steps.length), phase: op.steps[at].name, message: words[at] });
      Object.assign(op.steps[at], { state: 'RUNNING', attempt: 1, startedAt: now(), message: words[at] });
      if (instance !== undefined) emit(instance, 'apps.operation.progress', words[at], op, { percent: op.percent });
      publish();
      setTimeout(() => tick(at + 1), 1_300);
    };
    setTimeout(() => tick(0), 400);
  };

  const roles = (instance) => instance.components.map(({ key, displayName, count }) => {
    const there = instance.members.filter((member) => member.componentKey === key && member.status !== 'REMOVED');
    const healthy = there.filter((member) => member.health === 'HEALTHY').length;
    return { componentKey: key, displayName, desired: count, current: there.length, healthy, summary: `${healthy} of ${count} active` };
  });

  const launch = (input) => {
    const app = apps.find((each) => each.slug === input.appSlug);
    if (app === undefined) throw fault('NOT_FOUND', 'there is no such app');
    if (instances.some((each) => each.name === input.name && each.status !== 'STOPPED')) {
      throw fault('CONFLICT', 'the name is taken', [{ code: 'DUPLICATE', message: `an instance called ${input.name} exists in this project`, path: 'input.name' }]);
    }
    if (input.config?.partition === 'reserved') throw fault('CONFIG_INVALID', "the configuration does not fit the app's schema", [{ code: 'BAD_VALUE', message: 'the name is reserved', path: 'input.config.partition' }]);
    const manifest = app.activeManifest;
    const chosen = allocations.filter((each) => input.allocationIds.includes(each.id));
    const instance = {
      __typename: 'Instance', id: id('ins'), name: input.name, tenantId: tenant.id, projectId: input.projectId, appSlug: app.slug, appVersion: manifest.version, manifest, status: 'CREATED', health: 'UNKNOWN', healthMessage: '',
      revision: 0, config: input.config ?? {}, boundCapacityShape: chosen[0]?.shape ?? 'BAREMETAL', operatingMode: 'TENANT_DEDICATED', controlPlaneScope: 'PROJECT', runtimeBackend: `${app.slug}-controller`, smoke: input.smoke,
      failure: null, actions: manifest.actions, allocations: chosen, correlationId: `c-${randomBytes(8).toString('hex')}`, createdAt: now(), updatedAt: now(), releasedAt: null, log: makeLog(), jobs: [],
      components: manifest.components.map((each) => ({ key: each.key, displayName: each.displayName, count: (input.components ?? []).find((want) => want.key === each.key)?.count ?? each.default })),
    };
    Object.defineProperties(instance, {
      roles: { get: () => roles(instance) },
      lastOperation: { get: () => operations.find((op) => op.instanceId === instance.id) ?? null },
    });
    const spots = chosen.length === 0 ? [null] : chosen;
    const all = instance.components.flatMap(({ key, count }) => Array.from({ length: count }, (_, index) => {
      const place = spots[index % spots.length];
      return {
        __typename: 'Member', id: id('mem'), instanceId: instance.id, componentKey: key, index, status: 'PENDING', cordoned: false, health: 'UNKNOWN', healthMessage: '', allocation: place, node: place?.node ?? null,
        lastOperation: null, correlationId: instance.correlationId, adapterDetail: null, createdAt: now(), updatedAt: now(),
      };
    }));
    instance.members = all;
    instances.unshift(instance);
    for (const each of chosen) each.instance = instance;
    const op = operation('INSTANCE_CREATE', { instance }, input.reason, ['validate', 'bind_nodes', 'dispatch', 'wait_for_adapter', 'probe'], { components: input.components });
    emit(instance, 'apps.instance.requested', `Launch of ${app.displayName} ${manifest.version} asked for by ${actor.name}`, op, { name: input.name });
    audit(`${app.permissionFamily}.instance.create`, 'launchInstance', instance.id, input.reason);
    setTimeout(() => { instance.status = 'STARTING'; for (const member of all) member.status = 'JOINING'; emit(instance, 'apps.instance.starting', 'The cluster is being brought up', op); }, 1500);
    all.forEach((member, at) => setTimeout(() => {
      Object.assign(member, { status: 'ACTIVE', health: 'HEALTHY', adapterDetail: { pid: 4000 + at, ready: true } });
      emit(instance, 'apps.instance.member_added', `${member.componentKey} ${member.index} joined on ${member.node?.name ?? 'a node'}`, op, { memberId: member.id });
    }, 3500 + at * 600));
    if (input.name.startsWith('fail')) {
      setTimeout(() => {
        Object.assign(instance, { status: 'FAILED', failure: { code: 'READINESS_FAILED', message: 'worker 1 did not answer its readiness probe within 60 s', owner: 'adapter', retryable: true } });
        Object.assign(op, { state: 'FAILED', endedAt: now(), percent: 60, error: instance.failure, message: 'Readiness was not proved' });
        Object.assign(op.steps[4], { state: 'FAILED', attempt: 3, message: 'tcp 6818: connection refused', startedAt: now(), endedAt: now() });
        emit(instance, 'apps.instance.failed', 'The launch failed: worker 1 did not answer', op);
        op.log.push({ ...op });
      }, 3_000);
      return { instance, operation: op };
    }
    run(op, instance, ['Checking the configuration', 'Binding members to nodes', 'Handing over to the adapter', 'The adapter configures the members', 'The agents probe readiness'], () => {
      instance.status = 'RUNNING';
      instance.health = 'HEALTHY';
      instance.healthMessage = 'all members answer';
      emit(instance, 'apps.instance.running', `${instance.name} is running`, op, { durationSeconds: 7 });
    });
    return { instance, operation: op };
  };

  const decommission = ({ instanceId, reason }) => {
    const instance = instances.find((each) => each.id === instanceId);
    const op = operation('INSTANCE_DECOMMISSION', { instance }, reason, ['dispatch', 'wait_for_adapter', 'collect_residue', 'release'], null);
    instance.status = 'STOPPING';
    emit(instance, 'apps.instance.deleting', `${actor.name} asked to decommission it: ${reason ?? ''}`, op);
    audit('apps.instance.delete', 'decommissionInstance', instanceId, reason);
    run(op, instance, ['Handing over to the adapter', 'The adapter stops the members', 'The agents look for what is left', 'Giving the nodes back'], () => {
      instance.status = 'STOPPED';
      instance.health = 'UNKNOWN';
      instance.releasedAt = now();
      for (const member of instance.members) { member.status = 'REMOVED'; member.health = 'UNKNOWN'; emit(instance, 'apps.instance.member_removed', `${member.componentKey} ${member.index} is gone, nothing is left on ${member.node?.name ?? 'the node'}`, op); }
      for (const each of instance.allocations) each.instance = null;
      emit(instance, 'apps.instance.deleted', `${instance.name} is gone, with proof`, op);
    });
    return { instance, operation: op };
  };

  const invoke = ({ instanceId, action, input }) => {
    const instance = instances.find((each) => each.id === instanceId);
    audit(`scheduler.${action}`, 'invokeAction', instanceId);
    const output = {
      'queue.submit': () => {
        if (!input.script?.startsWith('#!')) throw fault('ADAPTER_REJECTED', 'the script must begin with #!', [{ code: 'BAD_VALUE', message: 'must begin with #!', path: 'input.script' }]);
        instance.jobs.unshift({ jobId: String(100 + instance.jobs.length), name: input.name ?? 'job', state: 'RUNNING', user: 'root', nodes: 1, elapsed: '0:03' });
        return { jobId: instance.jobs[0].jobId, state: 'PENDING' };
      },
      'queue.list': () => ({ jobs: instance.jobs }),
      'queue.cancel': () => ({ jobId: input.jobId, canceled: true }),
      echo: () => ({ text: input.text, member: instance.members[0]?.id }),
    }[action]();
    return { action, output, correlationId: `c-${randomBytes(6).toString('hex')}` };
  };

  /** The first answer for a repeated key. */
  const once = (make) => ({ input }) => {
    if (!used.has(input.idempotencyKey)) used.set(input.idempotencyKey, make(input));
    return used.get(input.idempotencyKey);
  };

  const query = {
    viewer: () => ({
      actor, tenant, bindings: [{ id: id('rb'), subjectId: actor.id, role: 'tenant_admin', tenantId: tenant.id, projectId: null, expiresAt: null, createdAt: past(500) }],
      projects: (args) => connection(projects, args), permissions: () => keys,
    }),
    apps: ({ search, ...args }) => connection(apps.filter((app) => search == null || app.slug.includes(search.toLowerCase()) || app.displayName.toLowerCase().includes(search.toLowerCase())), args),
    app: ({ slug }) => apps.find((app) => app.slug === slug) ?? Promise.reject(fault('NOT_FOUND', 'there is no such app')),
    allocations: ({ projectId, statuses, ...args }) => connection(allocations.filter((each) => each.projectId === projectId && (statuses == null || statuses.includes(each.status))), args),
    launchOptions: ({ projectId, appSlug }) => {
      const app = apps.find((each) => each.slug === appSlug);
      if (app?.activeManifest == null) throw fault('NOT_FOUND', 'there is no such app');
      const shape = app.activeManifest.compatibility.requires_capacity_shape;
      return {
        manifest: app.activeManifest, entitled: true,
        allocations: allocations.filter((each) => each.projectId === projectId && each.status === 'READY' && each.instance === null).map((each) => {
          const compatible = shape === undefined || shape === each.shape.toLowerCase();
          return { allocation: each, compatible, reasons: compatible ? [] : [{ code: 'SHAPE_UNSUPPORTED', message: `the app needs ${shape}, this is ${each.shape.toLowerCase()}`, path: '' }] };
        }),
      };
    },
    instances: ({ projectId, filter, ...args }) => connection(instances.filter((each) => each.projectId === projectId
      && (filter?.statuses == null || filter.statuses.includes(each.status)) && (filter?.search == null || each.name.includes(filter.search))), args),
    instance: ({ id: wanted }) => view(instances.find((each) => each.id === wanted)),
    operation: ({ id: wanted }) => operations.find((each) => each.id === wanted) ?? Promise.reject(fault('NOT_FOUND', 'there is no such operation')),
    operations: ({ projectId, states, ...args }) => connection(operations.filter((each) => each.projectId === projectId && (states == null || states.includes(each.state))), args),
    nodes: (args) => connection(nodes, args),
    auditEntries: (args) => connection(audits, args),
  };

  function view(instance) {
    if (instance === undefined) throw fault('NOT_FOUND', 'there is no such instance');
    return {
      ...instance, roles: instance.roles, lastOperation: instance.lastOperation,
      members: (args) => connection(instance.members, args),
      operations: (args) => connection(operations.filter((op) => op.instanceId === instance.id), args),
      events: (args) => connection(instance.log.items, args),
    };
  }

  const mutation = {
    launchInstance: once(launch),
    decommissionInstance: once(decommission),
    invokeAction: once(invoke),
    requestAllocation: once((input) => ({
      allocations: Array.from({ length: input.count }, (_, at) => allocation(input.shape, input.shape === 'BAREMETAL' ? 4 : input.gpuCount, nodes[at % 2], input.name ?? `capacity-${allocations.length + 1}`, input.projectId)),
    })),
    releaseAllocation: once((input) => {
      const found = allocations.find((each) => each.id === input.allocationId);
      const op = operation('ALLOCATION_RELEASE', { allocation: found }, input.reason, ['stop_instance', 'collect_residue', 'release'], null);
      Object.assign(found, { status: 'RELEASING', releaseOperation: op });
      audit('allocation.release', 'releaseAllocation', found.id, input.reason);
      run(op, undefined, ['Stopping what uses it', 'The agent looks for what is left', 'Giving the node back'], () => Object.assign(found, { status: 'RELEASED', releasedAt: now() }));
      return { allocation: found, operation: op };
    }),
  };

  const subscription = {
    instanceTimeline: ({ instanceId, after }) => {
      const instance = instances.find((each) => each.id === instanceId);
      if (instance === undefined) throw fault('NOT_FOUND', 'there is no such instance');
      return instance.log.follow(after == null ? 0 : Number(after), (event) => ({ instanceTimeline: event }));
    },
    projectActivity: ({ after }) => activity.follow(after == null ? activity.items.length : Number(after) + 1, (event) => ({ projectActivity: event })),
    operationProgress: async function* ({ operationId }) {
      const op = operations.find((each) => each.id === operationId);
      for await (const item of op.log.follow(op.log.items.length - 1, (state) => state)) {
        yield { operationProgress: item };
        if (['SUCCEEDED', 'FAILED', 'CANCELED'].includes(item.state)) return;
      }
    },
  };

  launch({ projectId: project.id, appSlug: 'notebook', name: 'notebook-tk4f', allocationIds: [allocations[0].id], config: { image: 'base' }, smoke: false, idempotencyKey: 'seed', reason: 'first look' });
  audit('allocation.release', 'releaseAllocation', allocations[1].id, 'clean up', 'FORBIDDEN');
  return { query, mutation, subscription };
}
