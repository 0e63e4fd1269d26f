// The real client against a real graphql-transport-ws server on a real socket, which is stopped and started.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buildSchema, parse } from 'graphql';
import { useServer } from 'graphql-ws/use/ws';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { GraphQLError } from 'graphql';
import { Live } from './live';
import { backoff } from '@gpuaas/client';
import { append, emptyTimeline } from '../lib/timeline';

interface Item {
  seq: number;
  cursor: string;
}
interface Data {
  feed: Item;
}

const schema = buildSchema(
  'type Query { a: Int } type Subscription { feed(after: String): Item! } type Item { seq: Int! cursor: String! }',
);
const document = parse('subscription F($after: String) { feed(after: $after) { seq cursor } }') as TypedDocumentNode<
  Data,
  { after?: string }
>;

/** How the served feed behaves: which events it sends after which cursor, and how it ends. */
type Behaviour = (after: string | undefined, connection: number) => AsyncGenerator<Data>;

interface Served {
  port: number;
  asked: (string | undefined)[];
  drop: (code?: number) => void;
  hush: (quiet: boolean) => void;
  stop: () => Promise<void>;
}

const open: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function serve(behaviour: Behaviour, port = 0): Promise<Served> {
  const asked: (string | undefined)[] = [];
  const http = createServer();
  const sockets = new WebSocketServer({ server: http, path: '/graphql' });
  useServer(
    {
      schema,
      roots: {
        subscription: {
          feed: ({ after }: { after?: string }) => {
            asked.push(after);
            return behaviour(after, asked.length);
          },
        },
      },
    },
    sockets,
  );
  await new Promise<void>((resolve) => http.listen(port, '127.0.0.1', resolve));
  const drop = (code?: number) => {
    for (const socket of sockets.clients) {
      if (code === undefined) socket.terminate();
      else socket.close(code, 'test');
    }
  };
  const hush = (quiet: boolean) => {
    for (const socket of sockets.clients) {
      if (quiet) socket.pause();
      else socket.resume();
    }
  };
  let stopped = false;
  const stop = () =>
    new Promise<void>((resolve) => {
      if (stopped) {
        resolve();
        return;
      }
      stopped = true;
      drop();
      http.close(() => resolve());
    });
  open.push(stop);
  return { port: (http.address() as AddressInfo).port, asked, drop, hush, stop };
}

const item = (seq: number): Data => ({ feed: { seq, cursor: `c${seq}` } });

/** Events after the cursor up to `upTo`, then silence. */
async function* replay(after: string | undefined, upTo: number): AsyncGenerator<Data> {
  for (let seq = after === undefined ? 1 : Number(after.slice(1)) + 1; seq <= upTo; seq++) yield item(seq);
  await new Promise(() => undefined);
}

function watch(port: number) {
  let timeline = emptyTimeline<Item>();
  const seen = { restarts: 0, ends: [] as string[], sessionLost: 0, raw: [] as number[], timeline: () => timeline };
  const live = new Live(
    `ws://127.0.0.1:${port}/graphql`,
    {
      onSessionLost: () => {
        seen.sessionLost++;
      },
      onStruggling: () => undefined,
    },
    WebSocket,
  );
  const stop = live.follow(
    document,
    {},
    {
      cursorOf: (data) => data.feed.cursor,
      onData: (data) => {
        seen.raw.push(data.feed.seq);
        timeline = append(timeline, [data.feed]);
      },
      onRestart: () => {
        seen.restarts++;
        timeline = emptyTimeline();
      },
      onEnd: (problem) => {
        seen.ends.push(problem.code);
      },
    },
  );
  open.push(() => {
    stop();
    live.close();
  });
  return { ...seen, seen, live };
}

/** Waits for a state, not for a time. */
const eventually = (check: () => void) =>
  expect
    .poll(
      () => {
        check();
        return true;
      },
      { timeout: 15_000, interval: 20 },
    )
    .toBe(true);

describe('a followed feed', () => {
  it('reads on from its last cursor after the server went away and came back, without gap or repeat', async () => {
    const first = await serve((after) => replay(after, 3));
    const { seen, live } = watch(first.port);
    await eventually(() => expect(seen.raw).toEqual([1, 2, 3]));
    await first.stop();
    await eventually(() => expect(live.status().state).toBe('reconnecting'));
    const second = await serve((after) => replay(after, 6), first.port);
    await eventually(() => expect(seen.timeline().lastSeq).toBe(6));
    expect(second.asked).toEqual(['c3']);
    expect(seen.raw).toEqual([1, 2, 3, 4, 5, 6]);
    expect(live.status()).toEqual({ state: 'open', epoch: 2 });
  }, 30_000);

  it('says within three seconds that the server is not heard, since when, and goes on when it answers again', async () => {
    const server = await serve((after) => replay(after, 3));
    const { seen, live } = watch(server.port);
    await eventually(() => expect(seen.raw).toEqual([1, 2, 3]));
    server.hush(true);
    const hushed = Date.now();
    await eventually(() => expect(live.status().state).toBe('reconnecting'));
    expect(Date.now() - hushed).toBeLessThan(3_500);
    expect(live.status().asOf).toBeLessThanOrEqual(hushed + 100);
    server.hush(false);
    await eventually(() => expect(live.status()).toEqual({ state: 'open', epoch: 1 }));
    expect(server.asked).toEqual([undefined]);
  }, 30_000);

  it('is offline at once when the browser says so', async () => {
    const server = await serve((after) => replay(after, 1));
    const { seen, live } = watch(server.port);
    await eventually(() => expect(seen.raw).toEqual([1]));
    live.offline();
    expect(live.status().state).toBe('reconnecting');
    expect(live.status().asOf).toBeLessThanOrEqual(Date.now());
    await eventually(() => expect(live.status()).toEqual({ state: 'open', epoch: 2 }));
  }, 30_000);

  it('resumes after it was cut off for reading too slowly', async () => {
    const server = await serve((after, connection) => replay(after, connection * 2));
    const { seen } = watch(server.port);
    await eventually(() => expect(seen.raw).toEqual([1, 2]));
    server.drop(4413);
    await eventually(() => expect(seen.raw).toEqual([1, 2, 3, 4]));
    expect(server.asked).toEqual([undefined, 'c2']);
  }, 30_000);

  it('resumes when the server completes or fails the subscription for a while', async () => {
    const server = await serve(async function* (after, connection) {
      yield* connection === 1 ? [item(1)] : [];
      if (connection === 2)
        throw new GraphQLError('starting', { extensions: { code: 'UNAVAILABLE', retryable: true } });
      if (connection > 2) yield* replay(after, 2);
    });
    const { seen } = watch(server.port);
    await eventually(() => expect(seen.raw).toEqual([1, 2]));
    expect(server.asked).toEqual([undefined, 'c1', 'c1']);
  }, 30_000);

  it('starts over when its cursor has expired', async () => {
    const server = await serve(async function* (after, connection) {
      if (connection === 1) {
        yield item(7);
        return;
      }
      if (after !== undefined) throw new GraphQLError('too old', { extensions: { code: 'CURSOR_EXPIRED' } });
      yield* replay(after, 2);
    });
    const { seen } = watch(server.port);
    await eventually(() => expect(seen.timeline().lastSeq).toBe(2));
    expect(seen.restarts).toBe(1);
    expect(server.asked).toEqual([undefined, 'c7', undefined]);
  }, 30_000);

  it('ends for good when the right is gone', async () => {
    const server = await serve(async function* () {
      yield item(1);
      throw new GraphQLError('gone', { extensions: { code: 'PERMISSION_REVOKED' } });
    });
    const { seen } = watch(server.port);
    await eventually(() => expect(seen.ends).toEqual(['PERMISSION_REVOKED']));
    expect(server.asked).toHaveLength(1);
  }, 30_000);

  it.each([4401, 4403])(
    'asks for a login when the server closes with %d',
    async (code) => {
      const server = await serve((after) => replay(after, 1));
      const { seen } = watch(server.port);
      await eventually(() => expect(seen.raw).toEqual([1]));
      server.drop(code);
      await eventually(() => expect(seen.sessionLost).toBe(1));
      expect(seen.ends).toEqual(['UNAUTHENTICATED']);
    },
    30_000,
  );
});

it('waits longer each time, up to a bound, with jitter', () => {
  expect([0, 1, 2, 20].map((attempt) => backoff(attempt, () => 0))).toEqual([300, 600, 1200, 10_000]);
  expect(backoff(20, () => 1)).toBe(15_000);
});
