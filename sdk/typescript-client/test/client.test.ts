// The client against a server of its own: what it sends, keeps and throws, and how feeds go on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, errorCodes, PlatformError } from '../src/index.js';
import type { Sink, Transport } from '../src/index.js';
import { GetInstanceDocument, WatchTimelineDocument } from '../src/generated/operations.js';
import { older } from '../src/generated/older.js';
import { TypedDocument } from '../src/document.js';

interface Asked { query: string; variables: Record<string, unknown>; headers: Headers }
type Reply = { status?: number; body?: unknown; headers?: Record<string, string> } | Error;

/** serve answers one request after the other with replies, and keeps the requests. */
function serve(...replies: Reply[]): { fetch: typeof fetch; asked: Asked[] } {
  const asked: Asked[] = [];
  const answer = async (_: unknown, init?: RequestInit): Promise<Response> => {
    asked.push({ ...(JSON.parse(String(init?.body)) as Asked), headers: new Headers(init?.headers) });
    const reply = replies.shift() ?? { body: { data: {} } };
    if (reply instanceof Error) throw reply;
    return new Response(JSON.stringify(reply.body ?? {}), { status: reply.status ?? 200, headers: reply.headers ?? {} });
  };
  return { fetch: answer as typeof fetch, asked };
}

const refusal = (code: string, retryable = false) =>
  ({ errors: [{ message: 'no', extensions: { code, retryable, correlation_id: 'c-1', reasons: [{ code: 'BAD_VALUE', message: 'm', path: 'input.a' }] } }] });
const change = new TypedDocument<{ done: string }, { input: { name: string; idempotencyKey: string } }>('mutation M');

test('one call is one request, with the token of now', async () => {
  const { fetch, asked } = serve({ status: 503 });
  const client = new Client({ url: 'https://p.test/', fetch, token: async () => 'secret' });
  await assert.rejects(client.request(GetInstanceDocument, { id: 'ins_1' }), { code: 'UNAVAILABLE', retryable: true });
  assert.equal(asked.length, 1);
  assert.equal(asked[0]?.headers.get('authorization'), 'Bearer secret');
  assert.match(asked[0]?.query ?? '', /^\s*query GetInstance\(/);
});

test('a refusal is an error of the catalogue, with its reasons', async () => {
  const { fetch } = serve({ body: refusal('FORBIDDEN') });
  const error = await new Client({ url: '', fetch }).request(change, { input: { name: 'a', idempotencyKey: 'k' } }).catch((e: unknown) => e);
  assert.ok(error instanceof PlatformError);
  assert.deepEqual([error.code, error.correlationId, error.reasons[0]?.path], ['FORBIDDEN', 'c-1', 'input.a']);
  assert.ok((errorCodes as readonly string[]).includes(error.code));
});

test('a submission keeps its key until it succeeds, and for the same input alone', async () => {
  const { fetch, asked } = serve(new TypeError('gone'), { body: { data: { done: 'x' } } });
  const submission = new Client({ url: '', fetch }).submission(change);
  await assert.rejects(submission.send({ name: 'a' }), { code: 'NETWORK' });
  assert.deepEqual(await submission.send({ name: 'a' }), { done: 'x' });
  await submission.send({ name: 'a' }).catch(() => undefined);
  await submission.send({ name: 'b' }).catch(() => undefined);
  const keys = asked.map((one) => (one.variables['input'] as { idempotencyKey: string }).idempotencyKey);
  assert.equal(keys[0], keys[1]);
  assert.equal(new Set(keys).size, 3);
});

test('repeat tries again what passes, and nothing else', async () => {
  const { fetch, asked } = serve({ status: 503 }, { body: { data: { done: 'x' } } }, { body: refusal('CONFLICT') });
  const client = new Client({ url: '', fetch });
  const work = () => client.request(change, { input: { name: 'a', idempotencyKey: 'k' } });
  assert.deepEqual(await client.repeat(work), { done: 'x' });
  await assert.rejects(client.repeat(work), { code: 'CONFLICT' });
  assert.equal(asked.length, 3);
});

/** played is a transport whose subscriptions are played by a function each, one after the other. */
function played(...parts: ((sink: Sink) => void)[]): { transport: Transport; asked: Record<string, unknown>[] } {
  const asked: Record<string, unknown>[] = [];
  const subscribe: Transport['subscribe'] = (payload, sink) => {
    asked.push(payload.variables);
    const part = parts.shift();
    queueMicrotask(() => part?.(sink));
    return () => undefined;
  };
  return { transport: { subscribe }, asked };
}

const event = (seq: number) => ({ data: { instanceTimeline: { seq, cursor: `c${seq}` } } });

test('a feed goes on behind its last cursor, and begins again where that has expired', async () => {
  const { transport, asked } = played(
    (sink) => { sink.next(event(1)); sink.error({ code: 1006 }); },
    (sink) => sink.error([{ message: 'old', extensions: { code: 'CURSOR_EXPIRED' } }]),
    (sink) => { sink.next(event(1)); sink.next(event(2)); },
  );
  let restarts = 0;
  const seen: number[] = [];
  const feed = new Client({ url: '', transport }).subscribe(WatchTimelineDocument, { instanceId: 'ins_1' }, {
    cursorOf: (data) => data.instanceTimeline.cursor, after: 'c0', restarted: () => { restarts++; },
  });
  for await (const { instanceTimeline } of feed) {
    seen.push(instanceTimeline.seq);
    if (instanceTimeline.seq === 2) break;
  }
  assert.deepEqual(seen, [1, 1, 2]);
  assert.deepEqual(asked.map((one) => one['after']), ['c0', 'c1', undefined]);
  assert.equal(restarts, 1);
});

test('a feed ends with what trying again cannot mend', async () => {
  const { transport } = played((sink) => sink.error([{ message: 'no', extensions: { code: 'FORBIDDEN' } }]));
  const feed = new Client({ url: '', transport }).subscribe(WatchTimelineDocument, { instanceId: 'ins_1' });
  await assert.rejects(feed.next(), { code: 'FORBIDDEN' });
});

test('an operation is followed by its id to its end, over a lost connection', async () => {
  const now = (state: string) => ({ data: { operationProgress: { id: 'op_1', state } } });
  const { transport, asked } = played(
    (sink) => { sink.next(now('RUNNING')); sink.error({ code: 1006 }); },
    (sink) => { sink.next(now('RUNNING')); sink.next(now('SUCCEEDED')); sink.complete(); },
  );
  const handle = new Client({ url: '', transport }).operation('op_1');
  const states: string[] = [];
  for await (const { state } of handle.watch()) states.push(state);
  assert.deepEqual(states, ['RUNNING', 'SUCCEEDED']);
  assert.deepEqual(asked, [{ operationId: 'op_1' }, { operationId: 'op_1' }]);
});

test('a platform of version 1 is asked for what it knows, and once known so at once', async () => {
  const old = { data: { instance: { id: 'ins_1', status: 'A_NEWER_STATE' } } };
  const { fetch, asked } = serve({ body: refusal('DOCUMENT_INVALID') }, { body: old }, { body: old });
  const client = new Client({ url: '', fetch, older });
  const { instance } = await client.request(GetInstanceDocument, { id: 'ins_1' });
  assert.equal(instance.status, 'A_NEWER_STATE');
  await client.request(GetInstanceDocument, { id: 'ins_1' });
  assert.deepEqual(asked.map((one) => one.query === older['GetInstance']), [false, true, true]);
});

test('what no older text mends is refused once', async () => {
  const { fetch, asked } = serve({ body: refusal('DOCUMENT_INVALID') }, { body: refusal('DOCUMENT_INVALID') });
  await assert.rejects(new Client({ url: '', fetch }).request(GetInstanceDocument, { id: 'i' }), { code: 'DOCUMENT_INVALID' });
  assert.equal(asked.length, 1);
  await assert.rejects(new Client({ url: '', fetch, older }).request(change, { input: { name: 'a', idempotencyKey: 'k' } }));
  assert.equal(asked.length, 2);
});

test('a feed of a platform of version 1 goes on in its older form', async () => {
  const texts: string[] = [];
  const transport: Transport = {
    subscribe(payload, sink: Sink) {
      texts.push(payload.query);
      queueMicrotask(() => {
        if (texts.length === 1) return sink.error([{ message: 'no', extensions: { code: 'DOCUMENT_INVALID' } }]);
        sink.next({ data: { operationProgress: { id: 'op_1', state: 'SUCCEEDED' } } });
      });
      return () => undefined;
    },
  };
  const client = new Client({ url: '', transport, older });
  assert.equal((await client.operation('op_1').wait()).state, 'SUCCEEDED');
  assert.equal(texts[1], older['WatchOperation']);
});
