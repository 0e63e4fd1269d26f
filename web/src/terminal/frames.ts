// The frames of a terminal: the kind in the first byte, the content in the rest. The platform speaks the same ones with
// its agents.

/** The subprotocol of the socket. */
export const protocol = 'app-platform-exec';

/** The kinds of frames. */
export const kinds = { input: 0, inputEnd: 1, size: 2, output: 3, errorOutput: 4, exit: 5, taken: 255 } as const;

/** The most bytes of one frame of input. */
const most = 32 << 10;

/** Returns what was typed as frames. */
export function inputFrames(text: string): Uint8Array<ArrayBuffer>[] {
  const bytes = new TextEncoder().encode(text);
  const frames = [];
  for (let at = 0; at < bytes.length; at += most) frames.push(frame(kinds.input, bytes.subarray(at, at + most)));
  return frames;
}

/** Returns the frame that reports a new size of the terminal. */
export function sizeFrame(rows: number, cols: number): Uint8Array<ArrayBuffer> {
  return frame(kinds.size, [rows >> 8, rows & 255, cols >> 8, cols & 255]);
}

/** Returns the frame that reports how many bytes of output were drawn. */
export function takenFrame(bytes: number): Uint8Array<ArrayBuffer> {
  return frame(kinds.taken, [bytes >>> 24, (bytes >> 16) & 255, (bytes >> 8) & 255, bytes & 255]);
}

/** Returns the exit code that a frame carries. */
export function exitCode(carries: Uint8Array): number {
  return carries.reduce((sum, byte) => sum * 256 + byte, 0);
}

function frame(kind: number, carries: ArrayLike<number>): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(1 + carries.length);
  out[0] = kind;
  out.set(carries, 1);
  return out;
}
