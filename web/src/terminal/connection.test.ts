import { expect, it } from 'vitest';
import { addressOf, connect } from './connection';
import type { End } from './connection';
import { inputFrames, kinds, takenFrame } from './frames';

/** A socket whose other end a test plays. */
class FakeSocket extends EventTarget {
  readonly OPEN = 1;
  readyState = 1;
  binaryType = '';
  readonly sent: (string | number[])[] = [];
  send(data: string | Uint8Array) {
    this.sent.push(typeof data === 'string' ? data : [...data]);
  }
  close() {
    this.readyState = 3;
    this.dispatchEvent(new Event('close'));
  }
  says(data: string | number[]) {
    const message = typeof data === 'string' ? data : new Uint8Array(data).buffer;
    this.dispatchEvent(new MessageEvent('message', { data: message }));
  }
}

function opened() {
  const socket = new FakeSocket();
  const ends: End[] = [];
  const output: string[] = [];
  let opens = 0;
  const listener = {
    onOpen: () => void (opens += 1),
    onOutput: (bytes: Uint8Array, drawn: () => void) => {
      output.push(new TextDecoder().decode(bytes));
      drawn();
    },
    onEnd: (end: End) => void ends.push(end),
  };
  const opening = { member: 'mem_1', command: ['sh'], user: '', reason: 'to look', rows: 24, cols: 80 };
  const connection = connect(opening, listener, socket as unknown as WebSocket);
  socket.dispatchEvent(new Event('open'));
  return { socket, ends, output, connection, opens: () => opens };
}

it('asks for the command, then passes what is typed and printed, and its exit code', () => {
  const { socket, ends, output, connection, opens } = opened();
  expect(JSON.parse(String(socket.sent[0]))).toMatchObject({ member: 'mem_1', reason: 'to look', rows: 24, cols: 80 });
  socket.says('{"opened":true}');
  connection.type('é');
  connection.resize(300, 100);
  socket.says([kinds.output, 104, 105]);
  socket.says([kinds.errorOutput, 33]);
  socket.says([kinds.exit, 0, 0, 1, 1]);
  expect(opens()).toBe(1);
  expect(socket.sent.slice(1)).toEqual([
    [0, 0xc3, 0xa9],
    [2, 1, 44, 0, 100],
  ]);
  expect(output).toEqual(['hi', '!']);
  expect(ends).toEqual([{ code: 257 }]);
  connection.type('too late');
  expect(socket.sent).toHaveLength(3);
});

it('says why it was refused, once', () => {
  const { socket, ends } = opened();
  socket.says('{"errors":[{"message":"no","extensions":{"code":"POLICY_DENIED","correlation_id":"c"}}]}');
  expect(ends).toEqual([
    { problem: { code: 'POLICY_DENIED', message: 'No.', correlationId: 'c', retryable: false, reasons: [] } },
  ]);
});

it('says that it broke, and nothing when it was closed here', () => {
  const broken = opened();
  broken.socket.close();
  expect(broken.ends[0]?.problem?.code).toBe('UNAVAILABLE');
  const closed = opened();
  closed.connection.close();
  expect(closed.ends).toEqual([]);
});

it('tells how much was drawn, so that a flood waits for the page', () => {
  const { socket } = opened();
  const much = [kinds.output, ...Array<number>(40_000).fill(65)];
  socket.says(much);
  expect(socket.sent).toHaveLength(1);
  socket.says(much);
  expect(socket.sent[1]).toEqual([...takenFrame(80_000)]);
});

it('cuts what is pasted into frames, and connects to the page’s own origin', () => {
  expect(inputFrames('x'.repeat(70_000)).map((frame) => frame.length)).toEqual([32_769, 32_769, 4_465]);
  expect(addressOf({ protocol: 'https:', host: 'console.test' })).toBe('wss://console.test/v1/exec');
  expect(addressOf({ protocol: 'http:', host: '127.0.0.1:8080' })).toBe('ws://127.0.0.1:8080/v1/exec');
});
