// The connection of a terminal to a command in a member.
import { plain, problemOfEnvelope } from '../api/errors';
import type { Problem } from '../api/errors';
import { exitCode, inputFrames, kinds, protocol, sizeFrame, takenFrame } from './frames';

/** What is opened; the audit records the reason. */
export interface Opening {
  readonly member: string;
  readonly command: readonly string[];
  readonly user: string;
  readonly reason: string;
}

/** How a terminal ended: with an exit code, or for a reason that the platform gives. */
export type End =
  { readonly code: number; readonly problem?: undefined } | { readonly problem: Problem; readonly code?: undefined };

/** The events of the other end. */
export interface Listener {
  readonly onOpen: () => void;
  /** Draws output, then calls `drawn`: the command waits for a slow screen. */
  readonly onOutput: (bytes: Uint8Array, drawn: () => void) => void;
  readonly onEnd: (end: End) => void;
}

/** An open terminal. */
export interface Connection {
  readonly type: (text: string) => void;
  readonly resize: (rows: number, cols: number) => void;
  /** Ends the command. */
  readonly close: () => void;
}

/** Bytes that are drawn before they are reported to the other end. */
const tellEvery = 64 << 10;

/** Connects. `onEnd` is called once, unless it is closed before. */
export function connect(
  opening: Opening & { rows: number; cols: number },
  listener: Listener,
  socket: WebSocket = new WebSocket(addressOf(location), protocol),
): Connection {
  socket.binaryType = 'arraybuffer';
  let over = false;
  let met = false;
  let untold = 0;
  const send = (bytes: Uint8Array<ArrayBuffer>) => {
    if (socket.readyState === socket.OPEN) socket.send(bytes);
  };
  const end = (how: End) => {
    if (over) return;
    over = true;
    listener.onEnd(how);
    socket.close();
  };
  const drawn = (bytes: number) => {
    untold += bytes;
    if (untold < tellEvery) return;
    send(takenFrame(untold));
    untold = 0;
  };
  socket.addEventListener('open', () => {
    met = true;
    socket.send(JSON.stringify(opening));
  });
  socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
    if (over) return;
    if (typeof data === 'string') {
      const problem = problemOfEnvelope(data);
      if (problem === undefined) listener.onOpen();
      else end({ problem });
      return;
    }
    const bytes = new Uint8Array(data);
    const carries = bytes.subarray(1);
    if (bytes[0] === kinds.exit) end({ code: exitCode(carries) });
    else if (bytes[0] === kinds.output || bytes[0] === kinds.errorOutput)
      listener.onOutput(carries, () => drawn(carries.length));
  });
  socket.addEventListener('close', () =>
    end({
      problem: met
        ? plain('UNAVAILABLE', 'The connection to the platform broke, and the command has ended.', '')
        : plain(
            'UNAVAILABLE',
            'The platform did not accept the connection. Load the page again: your login may have ended.',
            '',
          ),
    }),
  );
  return {
    type: (text) => inputFrames(text).forEach(send),
    resize: (rows, cols) => send(sizeFrame(rows, cols)),
    close: () => {
      over = true;
      socket.close();
    },
  };
}

/** Returns the address on the page's own origin. */
export function addressOf({ protocol: scheme, host }: Pick<Location, 'protocol' | 'host'>): string {
  return `${scheme === 'https:' ? 'wss' : 'ws'}://${host}/v1/exec`;
}
