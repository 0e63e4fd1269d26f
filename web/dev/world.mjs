// The stand-in's data: a tenant with two projects, a small catalog, nodes, allocations, and workloads whose
// operations move on by timers.
import { appList } from './apps.mjs';
import { memberFields, operationFields, readableChanges, seedOrphan } from './changes.mjs';
import { endpointsOf } from './endpoints.mjs';
import { Log, connection, correlation, id, now, past } from './kit.mjs';
import { standingOf } from './nodes.mjs';

/** Milliseconds that each step of an operation takes. */
const stepTime = 1_300;

const createSteps = [
  ['validate', 'Checking the configuration'],
  ['bind_nodes', 'Binding members to nodes'],
  ['dispatch', 'Handing over to the adapter'],
  ['wait_for_adapter', 'The adapter configures the members'],
  ['probe', 'The agents probe readiness'],
];
const decommissionSteps = [
  ['dispatch', 'Handing over to the adapter'],
  ['wait_for_adapter', 'The adapter stops the members'],
  ['collect_residue', 'The agents check what is left'],
  ['release', 'Giving the nodes back'],
];
const releaseSteps = [
  ['stop_instance', 'Stopping what uses it'],
  ['collect_residue', 'The agent checks what is left'],
  ['release', 'Giving the node back'],
];

/** wallsOf is what a node offers: the last one has lost its runtime. */
const wallsOf = (at) =>
  at === 2
    ? {
        classes: [],
        profiles: [],
        runtime: '',
        runtimeVersion: '',
        cgroupVersion: 2,
        gaps: [{ wall: 'RUNTIME', reason: 'crun is not in PATH' }],
      }
    : {
        classes: ['CONTAINER', 'WHOLE_NODE'],
        profiles: ['SERVICE', 'NESTING'],
        runtime: 'crun',
        runtimeVersion: '1.8.1',
        cgroupVersion: 1 + at,
        gaps: at === 0 ? [] : [{ wall: 'CPU', reason: 'processor time is not bounded' }],
      };

const devicesOf = (name, count) =>
  Array.from({ length: count }, (_, index) => ({
    uuid: `SIM-${name}-${index}`,
    index,
    minor: index,
    pciAddress: '',
    path: `/dev/nvidia${index}`,
    model: 'H100',
    memoryMiB: 0,
    simulated: true,
    cdi: '',
  }));

/** Everything there is, and what can be done to it. */
export class World {
  actor = { kind: 'USER', id: id('usr'), name: 'Ada Novak' };
  tenant = {
    __typename: 'Tenant',
    id: id('ten'),
    slug: 'northwind',
    displayName: 'Northwind Labs',
    createdAt: past(9000),
  };
  projects = ['Vision research', 'Genomics'].map((displayName) => ({
    __typename: 'Project',
    id: id('prj'),
    tenantId: this.tenant.id,
    slug: displayName.toLowerCase().replace(' ', '-'),
    displayName,
    createdAt: past(8000),
  }));
  apps = appList();
  nodes = ['node-a', 'node-b', 'node-c'].map((name, at) => ({
    __typename: 'ComputeNode',
    id: id('nod'),
    name,
    address: `10.77.0.${at + 1}`,
    status: at === 2 ? 'OFFLINE' : 'ONLINE',
    region: 'eu-central',
    sku: 'lab-4x',
    cpus: 64,
    memoryMiB: 262144,
    gpus: 4,
    gpuModel: 'H100',
    gpusSimulated: true,
    isolation: 'NAMESPACE',
    walls: wallsOf(at),
    devices: devicesOf(name, 4),
    agentVersion: '0.1.0',
    lastSeenAt: past(at === 2 ? 90 : 0),
    createdAt: past(5000),
    ...standingOf(at),
  }));
  allocations = [];
  instances = [];
  operations = [];
  audits = [];
  orphans = [];
  activity = new Log();

  /** fault makes an error of the envelope. */
  constructor(fault) {
    this.fault = fault;
    this.allocate({ shape: 'BAREMETAL', gpuCount: 4, node: this.nodes[0], name: 'bench-rack' });
    this.allocate({ shape: 'GPU_SLICE', gpuCount: 2, node: this.nodes[1], name: 'spare-slice' });
    const slice = this.allocate({ shape: 'GPU_SLICE', gpuCount: 1, node: this.nodes[1], name: 'notebook-slice' });
    this.launch({
      projectId: this.projects[0].id,
      appSlug: 'notebook',
      name: 'notebook-tk4f',
      allocationIds: [slice.id],
      config: { image: 'base' },
      smoke: false,
      system: false,
      reason: 'first test',
    });
    this.audit('allocation.release', 'releaseAllocation', slice.id, 'clean up', 'FORBIDDEN');
    seedOrphan(this);
  }

  audit(permissionKey, action, objectId, reason = '', refusal = '') {
    this.audits.unshift({
      __typename: 'AuditEntry',
      id: id('aud'),
      actor: this.actor,
      permissionKey,
      action,
      allowed: refusal === '',
      objectId,
      projectId: this.projects[0].id,
      before: null,
      after: { state: 'accepted' },
      reason: reason ?? '',
      code: refusal,
      repeats: 1,
      correlationId: correlation(),
      origin: '127.0.0.1',
      breakGlass: false,
      createdAt: now(),
    });
  }

  allocate({ shape, gpuCount, node, name, projectId = this.projects[0].id }) {
    const made = {
      __typename: 'Allocation',
      id: id('alc'),
      projectId,
      name,
      shape,
      gpuCount,
      sku: 'lab-4x',
      hourlyCost: { currency: 'EUR', amount: '9.600000' },
      region: 'eu-central',
      status: 'READY',
      node,
      instance: null,
      schedulerType: '',
      integrationMetadata: null,
      releaseOperation: null,
      createdAt: now(),
      releasedAt: null,
      devices: node.devices.slice(0, gpuCount),
      isolationClass: null,
      memoryMiB: shape === 'BAREMETAL' ? null : 65536 * gpuCount,
      cpuMillis: shape === 'BAREMETAL' ? null : 16000 * gpuCount,
    };
    this.allocations.unshift(made);
    return made;
  }

  operation(kind, { instance = null, allocation = null }, reason, steps, desiredChange = null) {
    const made = {
      __typename: 'Operation',
      id: id('op'),
      kind,
      state: 'PENDING',
      outcome: null,
      projectId: this.projects[0].id,
      instanceId: instance?.id ?? null,
      instance,
      allocationId: allocation?.id ?? null,
      phase: '',
      percent: 0,
      message: 'Waits for a worker',
      requester: this.actor,
      reason: reason ?? '',
      correlationId: correlation(),
      desiredChange,
      evidence: null,
      error: null,
      ...operationFields(),
      dispatchAttempt: 1,
      claimEpoch: 1,
      deadline: past(-15),
      createdAt: now(),
      startedAt: null,
      endedAt: null,
      log: new Log(),
      words: steps.map(([, word]) => word),
      steps: steps.map(([name], ordinal) => ({
        id: id('stp'),
        name,
        ordinal,
        state: 'PENDING',
        attempt: 0,
        message: '',
        evidence: null,
        startedAt: null,
        endedAt: null,
      })),
    };
    this.operations.unshift(made);
    made.log.push({ ...made });
    return made;
  }

  emit(instance, type, message, op, payload = {}) {
    const seq = instance.log.items.length + 1;
    const event = {
      __typename: 'Event',
      id: id('evt'),
      cursor: String(seq),
      seq,
      type,
      orgId: this.tenant.id,
      projectId: instance.projectId,
      appSlug: instance.appSlug,
      appInstanceId: instance.id,
      operationId: op?.id ?? null,
      memberId: null,
      message,
      payload,
      correlationId: instance.correlationId,
      occurredAt: now(),
    };
    Object.assign(instance, { revision: seq, updatedAt: event.occurredAt });
    instance.log.push(event);
    this.activity.push({ ...event, cursor: String(this.activity.items.length) });
  }

  /** Runs the operation's steps one after another, then calls back. */
  run(op, instance, done) {
    setTimeout(() => this.step(op, instance, 0, done), 400);
  }

  step(op, instance, at, done) {
    if (op.endedAt !== null) return;
    if (at > 0) Object.assign(op.steps[at - 1], { state: 'SUCCEEDED', endedAt: now() });
    if (at === op.steps.length) {
      Object.assign(op, {
        blockers: [],
        waitsFor: [],
        state: 'SUCCEEDED',
        outcome: 'NORMAL',
        percent: 100,
        endedAt: now(),
        message: 'Done',
        evidence: { probes: [{ name: 'ready', ok: true }], residue: { processes: 0, mounts: 0, files: 0 } },
      });
      done();
    } else {
      const word = op.words[at];
      Object.assign(op, {
        state: op.state === 'CANCELING' ? op.state : 'RUNNING',
        startedAt: op.startedAt ?? now(),
        percent: Math.round((100 * at) / op.steps.length),
        phase: op.steps[at].name,
        message: word,
      });
      Object.assign(op.steps[at], { state: 'RUNNING', attempt: 1, startedAt: now(), message: word });
      if (instance !== null) this.emit(instance, 'apps.operation.progress', word, op, { percent: op.percent });
      setTimeout(() => this.step(op, instance, at + 1, done), stepTime);
    }
    op.log.push({ ...op, steps: op.steps.map((step) => ({ ...step })) });
  }

  launch(input) {
    const app = this.apps.find((each) => each.slug === input.appSlug);
    this.refuse(input, app);
    const instance = this.instance(input, app);
    instance.generationRows = [this.generation(1, instance)];
    const op = this.operation('INSTANCE_CREATE', { instance }, input.reason, createSteps, {
      components: input.components ?? null,
    });
    this.emit(
      instance,
      'apps.instance.requested',
      `Launch of ${app.displayName} ${instance.appVersion} requested by ${this.actor.name}`,
      op,
      { name: input.name },
    );
    this.audit(`${app.permissionFamily}.instance.create`, 'launchInstance', instance.id, input.reason);
    setTimeout(() => this.start(instance, op), 1_500);
    if (input.name.startsWith('fail')) setTimeout(() => this.fail(instance, op), 3_000);
    this.run(op, instance, () => {
      Object.assign(instance, { status: 'RUNNING', health: 'HEALTHY', healthMessage: 'all members answer' });
      this.emit(instance, 'apps.instance.running', `${instance.name} is running`, op, { durationSeconds: 7 });
    });
    return { instance, operation: op };
  }

  generation(number, instance) {
    return {
      __typename: 'Generation',
      id: id('gen'),
      number,
      appVersion: instance.appVersion,
      manifest: instance.manifest,
      config: instance.config,
      operationId: null,
      createdAt: now(),
    };
  }

  refuse(input, app) {
    if (app?.activeManifest == null) throw this.fault('NOT_FOUND', 'there is no such app');
    if (this.instances.some((each) => each.name === input.name && each.status !== 'STOPPED')) {
      throw this.fault('CONFLICT', 'the name is taken', [
        { code: 'DUPLICATE', message: `an instance called ${input.name} exists in this project`, path: 'input.name' },
      ]);
    }
    if (input.config?.partition === 'reserved') {
      throw this.fault('CONFIG_INVALID', "the configuration does not fit the app's schema", [
        { code: 'BAD_VALUE', message: 'the name is reserved', path: 'input.config.partition' },
      ]);
    }
  }

  instance(input, app) {
    const manifest = app.activeManifest;
    const allocations = this.allocations.filter((each) => input.allocationIds.includes(each.id));
    const made = {
      __typename: 'Instance',
      id: id('ins'),
      name: input.name,
      tenantId: this.tenant.id,
      projectId: input.projectId,
      appSlug: app.slug,
      appVersion: manifest.version,
      permissionFamily: app.permissionFamily,
      manifest,
      status: 'CREATED',
      health: 'UNKNOWN',
      healthMessage: '',
      revision: 0,
      config: input.config ?? {},
      boundCapacityShape: allocations[0]?.shape ?? 'BAREMETAL',
      operatingMode: 'TENANT_DEDICATED',
      controlPlaneScope: 'PROJECT',
      runtimeBackend: `${app.slug}-controller`,
      smoke: input.smoke,
      system: input.system ?? false,
      failure: null,
      actions: manifest.actions,
      allocations,
      correlationId: correlation(),
      createdAt: now(),
      updatedAt: now(),
      releasedAt: null,
      log: new Log(),
      jobs: [],
      repairStopped: '',
      unservedAt: null,
      repair: { mode: 'AUTOMATIC', budget: 6, backOffSeconds: 60, graceSeconds: null, hourlyLimitMicros: null },
      components: manifest.components
        .map((each) => ({
          key: each.key,
          displayName: each.displayName,
          count: input.components?.find((want) => want.key === each.key)?.count ?? each.default,
        }))
        .map((each) =>
          app.slug === 'batch-queue' && each.key === 'worker' && input.name.startsWith('big')
            ? { ...each, count: 250 }
            : each,
        ),
    };
    made.rows = made.components.flatMap(({ key, count }) =>
      Array.from({ length: count }, (_, index) =>
        this.member(made, key, index, allocations[index % allocations.length]),
      ),
    );
    for (const each of allocations) each.instance = made;
    this.instances.unshift(made);
    return this.readable(made);
  }

  member(instance, componentKey, index, allocation) {
    return {
      __typename: 'Member',
      id: id('mem'),
      instanceId: instance.id,
      componentKey,
      index,
      status: 'PENDING',
      cordoned: false,
      health: 'UNKNOWN',
      healthMessage: '',
      profile: 'SERVICE',
      isolationClass: 'CONTAINER',
      ...memberFields(),
      allocation: allocation ?? null,
      node: allocation?.node ?? null,
      lastOperation: null,
      correlationId: instance.correlationId,
      adapterDetail: null,
      createdAt: now(),
      updatedAt: now(),
    };
  }

  /** Adds the fields that follow from others. */
  readable(instance) {
    const operations = () => this.operations.filter((op) => op.instanceId === instance.id);
    readableChanges(this, instance);
    return Object.assign(instance, {
      lastOperation: () => operations()[0] ?? null,
      operations: (args) => connection(operations(), args),
      endpoints: () => endpointsOf(instance, process.env.PORT ?? 8090),
      members: (args) => connection(instance.rows, args),
      events: (args) => connection(instance.log.items, args),
      roles: () =>
        instance.components.map(({ key, displayName, count }) => {
          const there = instance.rows.filter((member) => member.componentKey === key && member.status !== 'REMOVED');
          const healthy = there.filter((member) => member.health === 'HEALTHY').length;
          return {
            componentKey: key,
            displayName,
            desired: count,
            current: there.length,
            healthy,
            summary: `${healthy} of ${count} active`,
          };
        }),
    });
  }

  start(instance, op) {
    instance.status = 'STARTING';
    for (const member of instance.rows) member.status = 'JOINING';
    this.emit(instance, 'apps.instance.starting', 'The cluster is being brought up', op);
    const pace = instance.rows.length > 20 ? 20 : 600;
    instance.rows.forEach((member, at) =>
      setTimeout(
        () => {
          Object.assign(member, {
            status: 'ACTIVE',
            health: 'HEALTHY',
            adapterDetail: { pid: 4000 + at, ready: true },
          });
          this.emit(
            instance,
            'apps.instance.member_added',
            `${member.componentKey} ${member.index} joined on ${member.node?.name ?? 'a node'}`,
            op,
            { memberId: member.id },
          );
        },
        2_000 + at * pace,
      ),
    );
  }

  fail(instance, op) {
    const error = {
      code: 'READINESS_FAILED',
      message: 'worker 1 did not answer its readiness probe within 60 s',
      owner: 'adapter',
      retryable: true,
    };
    Object.assign(instance, { status: 'FAILED', failure: error });
    Object.assign(op, { state: 'FAILED', endedAt: now(), error, message: 'Readiness was not proved' });
    this.emit(instance, 'apps.instance.failed', 'The launch failed: worker 1 did not answer', op);
    op.log.push({ ...op });
  }

  decommission({ instanceId, reason }) {
    const instance = this.instances.find((each) => each.id === instanceId);
    const op = this.operation('INSTANCE_DECOMMISSION', { instance }, reason, decommissionSteps);
    instance.status = 'STOPPING';
    this.emit(instance, 'apps.instance.deleting', `${this.actor.name} requested its removal: ${reason ?? ''}`, op);
    this.audit('apps.instance.delete', 'decommissionInstance', instanceId, reason);
    this.run(op, instance, () => {
      Object.assign(instance, { status: 'STOPPED', health: 'UNKNOWN', releasedAt: now() });
      for (const member of instance.rows) {
        Object.assign(member, { status: 'REMOVED', health: 'UNKNOWN' });
        this.emit(
          instance,
          'apps.instance.member_removed',
          `${member.componentKey} ${member.index} is removed, nothing is left on ${member.node?.name ?? 'the node'}`,
          op,
        );
      }
      for (const each of instance.allocations) each.instance = null;
      this.emit(instance, 'apps.instance.deleted', `${instance.name} is deleted, with proof`, op);
    });
    return { instance, operation: op };
  }

  release({ allocationId, reason }) {
    const allocation = this.allocations.find((each) => each.id === allocationId);
    const op = this.operation('ALLOCATION_RELEASE', { allocation }, reason, releaseSteps);
    Object.assign(allocation, { status: 'RELEASING', releaseOperation: op });
    this.audit('allocation.release', 'releaseAllocation', allocationId, reason);
    this.run(op, null, () => Object.assign(allocation, { status: 'RELEASED', releasedAt: now() }));
    return { allocation, operation: op };
  }
}
