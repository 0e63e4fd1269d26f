// The stand-in's report of a request and its support bundle: of an operation that waits for a node.
import { past } from './kit.mjs';

/** The root fields of triage over the stand-in's world. */
export function triageQueries(world) {
  const of = (wanted) =>
    world.operations.find((each) => [each.id, each.instanceId, each.correlationId].includes(wanted)) ??
    Promise.reject(world.fault('NOT_FOUND', 'there is no such request'));
  return {
    triage: async ({ id }) => report(await of(id), world),
    supportBundle: async ({ id }) => bundle(await of(id)),
  };
}

function report(op, world) {
  const piece = (kind, what, rest = {}) => ({
    kind,
    id: null,
    at: past(3),
    what,
    state: '',
    message: '',
    link: `/operations/${op.id}`,
    traceId: '',
    ...rest,
  });
  const instance = op.instanceId ?? null;
  return {
    correlationId: op.correlationId,
    operationId: op.id,
    instanceId: instance,
    allocationId: null,
    projectId: op.projectId,
    asked: op.kind,
    requester: world.actor,
    reason: op.reason ?? '',
    at: op.createdAt,
    stands: 'BLOCKED',
    code: 'NODE_OFFLINE',
    message: 'node-2 does not answer: start its agent again, or go on by force',
    owner: 'node',
    branch: {
      ref: 'instance-stuck/stopping/residue-node-unreachable',
      runbook: 'instance-stuck',
      title: 'An instance that makes no progress',
      section: 'STOPPING: the teardown does not end',
      means: 'the node does not answer, so that it cannot prove that nothing is left',
      do: 'start the agent again, or decommission by force',
    },
    next: {
      mutation: 'decommissionInstance',
      plan: 'planDecommissionInstance',
      argument: 'instanceId',
      value: instance ?? op.id,
      force: true,
      permissionKey: 'apps.instance.delete',
      allowed: true,
      document:
        'mutation Triage($input: DecommissionInstanceInput!) { decommissionInstance(input: $input) { operation { id } } }',
      variables: { input: { instanceId: instance, force: true, reason: `triage: NODE_OFFLINE at ${op.id}` } },
      planDocument: '',
      planVariables: null,
    },
    evidence: [
      piece('BLOCKER', 'NODE_OFFLINE', { message: 'node-2 does not answer' }),
      piece('STEP', 'residue', { state: 'RUNNING', message: 'waits for the proof of node-2' }),
      piece('AUDIT', 'decommissionInstance', { state: 'ALLOWED', link: `/audit?correlation=${op.correlationId}` }),
      piece('TRACE', '9c446e0ba458321a026a8779d398dbe5', { link: 'https://tools.example.com/trace/9c446e0b' }),
      piece('LOGS', `{service_name=~".+"} |= "${op.correlationId}"`, { link: '' }),
    ],
    traceId: '9c446e0ba458321a026a8779d398dbe5',
    costSoFar: { amount: '1.500000', currency: 'EUR' },
    others: world.operations
      .filter((each) => each.id !== op.id)
      .slice(0, 1)
      .map((each) => ({ operationId: each.id, kind: each.kind, state: each.state, at: each.createdAt })),
    links: [{ name: 'logs', url: `https://tools.example.com/logs?id=${op.correlationId}` }],
  };
}

function bundle(op) {
  const sections = [
    { name: 'request', fields: ['correlationId', 'operationId', 'stands', 'code'], rows: 1, digest: 'sha256:0' },
    {
      name: 'step',
      fields: ['name', 'ordinal', 'state', 'attempt', 'startedAt', 'endedAt'],
      rows: 4,
      digest: 'sha256:1',
    },
  ];
  return {
    name: `support-bundle-${op.id}.jsonl`,
    madeAt: past(0),
    content: '{"manifest":{}}\n',
    digest: 'sha256:2',
    sections,
    leftOut: [
      { what: 'event.message', why: 'it may have a secret in it', count: 1 },
      { what: 'reasons, names and labels', why: 'people write them', count: 0 },
    ],
  };
}
