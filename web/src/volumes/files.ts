// The files of a volume over HTTP: a folder's list, and uploads that resume where their request was cut. A file is read
// in pieces, once for its digest and once to be sent; it is never in memory as a whole.
import { sha256 } from '@noble/hashes/sha2.js';
import { isUnreachable, plain, problemOfEnvelope } from '../api/errors';
import type { Problem } from '../api/errors';
import type { Answer } from '../api/hooks';

/** An entry of a folder, as the platform lists it. */
export interface FileEntry {
  readonly name: string;
  /** The name in the form of an address, which preserves every byte. */
  readonly segment: string;
  readonly kind: 'FILE' | 'FOLDER' | 'LINK' | 'OTHER';
  readonly size: number;
  readonly modifiedAt: string;
}

/** A page of a folder. */
export interface FilePage {
  readonly entries: readonly FileEntry[];
  readonly next: string;
}

/** The bytes of a part that is sent at once, so that progress is seen. */
const partSize = 8 * 2 ** 20;

/** How often a part is tried without progress, and the milliseconds between two tries. */
const tries = 8;
const delays = { least: 250, most: 8_000 };

/** Returns the address of a file, or of a folder by a slash at its end; segments are percent-encoded. */
export function addressOf(volumeId: string, segments: readonly string[], folder: boolean): string {
  const path = segments.join('/');
  return `/v1/volumes/${encodeURIComponent(volumeId)}/files/${path}${folder && path !== '' ? '/' : ''}`;
}

/** Returns the segment of a name that a person types or that a file of this machine has. */
export function segmentOf(name: string): string {
  return encodeURIComponent(name).replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Reads a page of a folder. */
export async function listFolder(
  volumeId: string,
  segments: readonly string[],
  after: string,
  signal: AbortSignal,
): Promise<Answer<FilePage>> {
  const query = after === '' ? '' : `?after=${encodeURIComponent(after)}`;
  const sent = await send(addressOf(volumeId, segments, true) + query, { method: 'GET', signal });
  return sent.problem === undefined ? { data: (await sent.response.json()) as FilePage } : { problem: sent.problem };
}

/** Creates a folder. */
export function makeFolder(volumeId: string, segments: readonly string[]): Promise<Answer<true>> {
  return done(addressOf(volumeId, segments, true), 'PUT');
}

/** Deletes a file, or a folder with all that is in it. */
export function removeEntry(volumeId: string, segments: readonly string[], folder: boolean): Promise<Answer<true>> {
  return done(addressOf(volumeId, segments, folder) + (folder ? '?recursive=true' : ''), 'DELETE');
}

/** The input of an upload, and its callbacks. */
export interface Upload {
  readonly file: Blob;
  readonly address: string;
  readonly signal: AbortSignal;
  /** Receives the progress, from 0 to 1: of computing the digest, then of sending. */
  readonly onProgress: (step: 'digest' | 'send', done: number) => void;
  /** Waits before another try; tests do not wait. */
  readonly wait?: (milliseconds: number) => Promise<void>;
}

/** Uploads a file. It goes on where an earlier upload of the same bytes to the same address was cut. */
export async function upload(given: Upload): Promise<Answer<true>> {
  const total = given.file.size;
  const digest = await digestOf(given);
  const wait = given.wait ?? ((milliseconds) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds)));
  let most = -1;
  let next: number | undefined;
  for (let attempt = 1, delay = delays.least; ; attempt++) {
    const step: Step = await sendPart(given, digest, total, next);
    next = step.next;
    if (step.done === true) return { data: true };
    if (step.offset !== undefined && step.offset > most) {
      if (most >= 0) [attempt, delay] = [1, delays.least];
      most = step.offset;
    }
    if (step.problem === undefined) continue;
    if (given.signal.aborted || attempt >= tries || !passing(step.problem)) return { problem: step.problem };
    await wait(delay);
    delay = Math.min(2 * delay, delays.most);
  }
}

interface Step {
  readonly done?: boolean;
  readonly offset?: number | undefined;
  /** How much the platform has after a stored part. */
  readonly next?: number | undefined;
  readonly problem?: Problem;
}

/** Reads how much of an upload the platform has. */
async function offsetOf({ address, signal }: Upload, digest: string, total: number): Promise<Answer<number>> {
  const known = await send(address, {
    method: 'HEAD',
    signal,
    headers: { 'Repr-Digest': digest, 'Upload-Length': String(total) },
  });
  const refused = known.problem !== undefined && known.status >= 400 && known.status < 500 && known.status !== 429;
  if (known.problem !== undefined && !refused) return { problem: known.problem };
  // A refused upload starts at 0, so that a PUT reports the reason: an answer to HEAD has no body.
  const from = known.problem === undefined ? Number(known.response.headers.get('Upload-Offset') ?? Number.NaN) : 0;
  if (!Number.isSafeInteger(from) || from < 0 || from > total)
    return { problem: plain('INTERNAL', 'The platform does not report how much of the file it has.', '') };
  return { data: from };
}

/** Sends the next part after the stored ones; their size is read where the last answer does not state it. */
async function sendPart(given: Upload, digest: string, total: number, next: number | undefined): Promise<Step> {
  const { file, address, signal, onProgress } = given;
  const there = next === undefined ? await offsetOf(given, digest, total) : { data: next };
  if (there.problem !== undefined) return { problem: there.problem };
  const from = there.data;
  onProgress('send', total === 0 ? 1 : from / total);
  const to = Math.min(from + partSize, total);
  const range = to === from ? `bytes */${total}` : `bytes ${from}-${to - 1}/${total}`;
  const headers: Record<string, string> = { 'Repr-Digest': digest };
  if (total > 0) headers['Content-Range'] = range;
  const sent = await send(address, { method: 'PUT', signal, headers, body: file.slice(from, to) });
  if (sent.problem !== undefined) return { offset: from, problem: sent.problem };
  onProgress('send', total === 0 ? 1 : to / total);
  return { offset: from, next: to, done: sent.response.status === 201 };
}

/** Returns the SHA-256 of a file in the form of the header. */
async function digestOf({ file, signal, onProgress }: Upload): Promise<string> {
  const sum = sha256.create();
  let read = 0;
  const reader = file.stream().getReader();
  for (;;) {
    const { done: ended, value } = await reader.read();
    if (ended || signal.aborted) break;
    sum.update(value);
    read += value.length;
    onProgress('digest', file.size === 0 ? 1 : read / file.size);
  }
  return `sha-256=:${btoa(String.fromCharCode(...sum.digest()))}:`;
}

/** Reports whether a problem is temporary. */
function passing(problem: Problem): boolean {
  return problem.retryable || isUnreachable(problem) || ['CONFLICT', 'RATE_LIMITED'].includes(problem.code);
}

async function done(address: string, method: string): Promise<Answer<true>> {
  const sent = await send(address, { method });
  return sent.problem === undefined ? { data: true } : { problem: sent.problem };
}

type Sent =
  | { readonly response: Response; readonly problem?: undefined }
  | { readonly problem: Problem; readonly status: number; readonly response?: undefined };

async function send(address: string, init: RequestInit): Promise<Sent> {
  try {
    const response = await fetch(address, { ...init, credentials: 'same-origin', cache: 'no-store' });
    return response.ok ? { response } : { problem: await refused(response), status: response.status };
  } catch {
    const problem = { ...plain('NETWORK', 'The connection to the platform broke.', ''), retryable: true };
    return { problem, status: 0 };
  }
}

/** Returns the problem of an answer; that of a HEAD has no body. */
async function refused(response: Response): Promise<Problem> {
  const problem = problemOfEnvelope(await response.text());
  if (problem !== undefined) return problem;
  const again = response.status === 503 || response.status === 429;
  return {
    ...plain('UNAVAILABLE', `The platform refused the request (HTTP ${response.status}).`, ''),
    retryable: again,
  };
}
