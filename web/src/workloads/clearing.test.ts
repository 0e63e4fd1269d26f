// @vitest-environment happy-dom
import { expect, it } from 'vitest';
import { withNames } from '../changes/Blockers';
import type { BlockerBitsFragment } from '../generated/graphql';
import { clearingsOf, nameIn } from './clearing';
import type { Standing } from './clearing';

const id = 'mem_01m84z4rmyeanayg95np1hfjxw';
const work = {
  kind: 'job',
  id: 'x/4',
  workId: '4',
  name: 'train',
  memberId: id,
  owner: 'ada',
  since: null,
  message: '',
};

function blocker(code: string, permissionKey: string, subject = id): BlockerBitsFragment {
  return { code, permissionKey, subject, message: '', owner: 'user', since: '', nextRetryAt: null };
}

/** A workload whose worker 1 drains, with the parts that the rules read. */
function workload({ kind = 'MEMBER_DRAIN', state = 'RUNNING', field = 'string', required = ['jobId'] } = {}): Standing {
  const member = { id, componentKey: 'worker', index: 1, status: 'DRAINING', node: { id: 'nod_1', name: 'node-2' } };
  const properties = { jobId: { type: field } };
  return {
    permissionFamily: 'scheduler',
    manifest: { work: null },
    members: { edges: [{ node: member }] },
    actions: [{ name: 'stop', permissionKey: 'scheduler.queue.cancel', inputSchema: { required, properties } }],
    lastOperation: { id: 'op_1', kind, state, cancelRequestedAt: null, waitsFor: [work] },
  } as unknown as Standing;
}

const labels = (...given: Parameters<typeof clearingsOf>) => clearingsOf(...given).map((each) => each.label);
const waits = blocker('WORK_RUNNING', 'scheduler.node.operate');

it('offers to stop the work that is waited for, to cancel the drain, and to remove the member by force', () => {
  const found = clearingsOf(waits, workload());
  expect(found.map((each) => [each.label, each.permissionKey])).toEqual([
    ['Cancel job 4', 'scheduler.queue.cancel'],
    ['Cancel the drain', 'operation.cancel'],
    ['Remove worker 1 by force…', 'scheduler.member.remove'],
  ]);
  expect(found[0]).toMatchObject({ action: 'stop', input: { jobId: '4' } });
});

it('gives the work’s id as the app’s schema asks for it, and not to an action that needs more', () => {
  expect(clearingsOf(waits, workload({ field: 'integer' }))[0]).toMatchObject({ input: { jobId: 4 } });
  expect(labels(waits, workload({ required: ['jobId', 'signal'] }))[0]).toBe('Cancel the drain');
  expect(labels(waits, workload({ field: 'object' }))[0]).toBe('Cancel the drain');
});

it('does not offer to cancel what cannot be canceled', () => {
  expect(labels(waits, workload({ kind: 'INSTANCE_DECOMMISSION' }))).toEqual(['Cancel job 4']);
  expect(labels(blocker('PROBE_FAILING', 'operation.cancel'), workload({ state: 'CANCELING' }))).toEqual([]);
});

it('offers what the key of a blocker stands for, on the member that it is about', () => {
  const lost = (subject: string) => labels(blocker('NODE_OFFLINE', 'scheduler.member.replace', subject), workload());
  expect([lost(id), lost('nod_1'), lost('node-2')]).toEqual(Array(3).fill(['Replace worker 1…']));
  expect(lost('node-9')).toEqual([]);
  expect(labels(blocker('INSTANCE_FAILED', 'scheduler.instance.delete'), workload())).toEqual(['Decommission…']);
  expect(labels(blocker('MEMBER_FAILED', 'scheduler.member.recover'), workload())).toEqual([]); // it has not failed
  expect(labels(blocker('OPERATION_FAILED', 'operation.retry'), workload({ state: 'FAILED' }))).toEqual(['Try again…']);
  expect(labels(blocker('NO_WORKER', ''), workload())).toEqual([]);
});

it('names members in a text, and leaves what it does not know', () => {
  const name = nameIn(workload());
  const other = 'mem_01m84z4rmyeanayg95np1hfjxx';
  expect(withNames(`work on ${id} and ${other}`, name)).toBe(`work on worker 1 and ${other}`);
});

it('stops work by the action that the app declares for it', () => {
  const standing = workload();
  const kill = { name: 'kill', permissionKey: 'scheduler.queue.cancel' };
  const schema = { required: [], properties: { run: { type: 'integer' } } };
  const declared = {
    ...standing,
    actions: [...standing.actions, { ...kill, inputSchema: schema }],
    manifest: { work: { cancel: { action: 'kill', id: 'run' } } },
  } as unknown as Standing;
  expect(clearingsOf(waits, declared)[0]).toMatchObject({ action: 'kill', input: { run: 4 } });
});
