import { createHash } from 'node:crypto';
import { afterEach, expect, test, vi } from 'vitest';
import { addressOf, segmentOf, upload } from './files';

afterEach(() => vi.unstubAllGlobals());

/** Plays a node that keeps parts; cuts returns how many bytes of the PUT with this number arrive before a cut. */
function node(cuts: (put: number) => number | undefined) {
  const kept: number[] = [];
  const state = { placed: undefined as Uint8Array | undefined, puts: 0, heads: 0, digest: '', ranges: [] as string[] };
  vi.stubGlobal('fetch', async (_address: string, init: RequestInit) => {
    const headers = new Headers(init.headers);
    if (init.method === 'HEAD') {
      state.heads++;
      return new Response(null, { status: 204, headers: { 'Upload-Offset': String(kept.length) } });
    }
    state.puts++;
    state.digest = headers.get('Repr-Digest') ?? '';
    state.ranges.push(headers.get('Content-Range') ?? '');
    const body = new Uint8Array(await (init.body as Blob).arrayBuffer());
    const arrives = cuts(state.puts);
    for (const byte of body.slice(0, arrives ?? body.length)) kept.push(byte);
    if (arrives !== undefined) throw new TypeError('network error');
    const total = Number((headers.get('Content-Range') ?? '/0').split('/')[1]);
    if (kept.length < total) return new Response(null, { status: 202 });
    state.placed = Uint8Array.from(kept);
    return new Response(null, { status: 201 });
  });
  return state;
}

const at = (file: Blob, signal = new AbortController().signal) => ({
  file,
  address: '/v1/volumes/vol_1/files/x',
  signal,
  onProgress: () => undefined,
  wait: () => Promise.resolve(),
});

test('an upload goes on behind what arrived when its request is cut', async () => {
  const content = new Uint8Array(9 * 2 ** 20).map((_, i) => i % 251);
  const served = node((put) => (put === 1 ? 1_000 : put === 2 ? 0 : undefined));
  const answer = await upload(at(new Blob([content])));
  expect(answer).toEqual({ data: true });
  expect(served.ranges[2]).toMatch(/^bytes 1000-/);
  expect(served.puts).toBe(4);
  expect(served.heads).toBe(3); // at the beginning and after each cut: a stored part's answer states the next offset
  expect(served.digest).toBe(`sha-256=:${createHash('sha256').update(content).digest('base64')}:`);
  expect(
    createHash('sha256')
      .update(served.placed ?? '')
      .digest('hex'),
  ).toBe(createHash('sha256').update(content).digest('hex'));
});

test('an empty file is brought in without a range', async () => {
  const served = node(() => undefined);
  expect(await upload(at(new Blob([])))).toEqual({ data: true });
  expect(served.ranges).toEqual(['']);
});

test('an upload gives up when nothing more arrives', async () => {
  const served = node(() => 0);
  expect((await upload(at(new Blob(['content'])))).problem?.code).toBe('NETWORK');
  expect(served.puts).toBe(8);
});

test('a refusal that does not go by is not tried again', async () => {
  let puts = 0;
  vi.stubGlobal('fetch', (_address: string, init: RequestInit) => {
    if (init.method === 'HEAD')
      return Promise.resolve(new Response(null, { status: 204, headers: { 'Upload-Offset': '0' } }));
    puts++;
    const errors = [
      { message: 'no space', extensions: { code: 'LIMIT_EXCEEDED', correlation_id: 'x', retryable: false } },
    ];
    return Promise.resolve(new Response(JSON.stringify({ errors }), { status: 422 }));
  });
  expect((await upload(at(new Blob(['content'])))).problem?.code).toBe('LIMIT_EXCEEDED');
  expect(puts).toBe(1);
});

test('what is refused to the question how much is there is refused again with its reason', async () => {
  const asked: (string | undefined)[] = [];
  vi.stubGlobal('fetch', (_address: string, init: RequestInit) => {
    asked.push(init.method);
    if (init.method === 'HEAD') return Promise.resolve(new Response(null, { status: 412 }));
    const errors = [
      {
        message: 'it is on no node yet',
        extensions: { code: 'FAILED_PRECONDITION', correlation_id: 'x', retryable: false },
      },
    ];
    return Promise.resolve(new Response(JSON.stringify({ errors }), { status: 412 }));
  });
  const { problem } = await upload(at(new Blob(['content'])));
  expect(problem?.code).toBe('FAILED_PRECONDITION');
  expect(problem?.message).toMatch(/on no node yet/);
  expect(asked).toEqual(['HEAD', 'PUT']);
});

test('addresses have percent-encoded segments', () => {
  expect(addressOf('vol_1', [], true)).toBe('/v1/volumes/vol_1/files/');
  expect(addressOf('vol_1', ['a', segmentOf('b c/?#')], false)).toBe('/v1/volumes/vol_1/files/a/b%20c%2F%3F%23');
});
