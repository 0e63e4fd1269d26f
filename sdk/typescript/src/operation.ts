// One journalled operation, its file, and its final status.
import * as fs from "node:fs";
import * as path from "node:path";
import {
  ended, Failure, Refusal, type CancelResult, type Dispatch, type OperationError, type Status,
} from "./contract.js";
import { isFull, Lines } from "./files.js";
import { Interrupted, type Why } from "./scope.js";
import type { Run } from "./run.js";
import { idPattern } from "./validate.js";

/** Entry is one line of the journal. Only what changed is set; the first holds the dispatch. */
export interface Entry {
  at: number;
  began?: number;
  dispatch?: Dispatch;
  hash?: string;
  /** generation is the attempt with which the run began; a new one forgets steps. */
  generation?: number;
  status?: Status;
  /** version is the feed's version, beside a terminal status. */
  version?: number;
  step?: string;
  spec?: object;
  saved?: Record<string, string>;
  canceled?: boolean;
  committed?: boolean;
  /** stillborn is an operation that was canceled before its dispatch arrived. */
  stillborn?: boolean;
}

export class Operation {
  began = 0;
  touched = 0;
  hash = "";
  generation = 0;
  version = 0;
  canceled = false;
  committed = false;
  stillborn = false;
  readonly steps = new Map<string, object>();
  readonly saved = new Map<string, string>();
  run: Run | undefined;

  constructor(readonly id: string, readonly lines: Lines, public dispatch: Dispatch, public status: Status) {}

  get ended(): boolean { return ended(this.status.state); }

  apply(entry: Entry): void {
    this.touched = entry.at;
    if (entry.dispatch !== undefined) this.dispatch = entry.dispatch;
    if (entry.hash !== undefined) {
      this.hash = entry.hash;
      this.began = entry.began ?? entry.at;
    }
    if (entry.generation !== undefined) {
      this.generation = entry.generation;
      this.steps.clear();
      this.saved.clear();
      this.canceled = this.committed = false;
    }
    if (entry.status !== undefined) this.status = entry.status;
    this.version = entry.version ?? this.version;
    if (entry.step !== undefined && !this.steps.has(entry.step)) this.steps.set(entry.step, entry.spec ?? {});
    for (const [name, value] of Object.entries(entry.saved ?? {})) this.saved.set(name, value);
    this.canceled ||= entry.canceled === true;
    this.committed ||= entry.committed === true;
    this.stillborn ||= entry.stillborn === true;
  }

  /** record journals a change and applies it: what is in memory is never ahead of what is on disk. */
  record(entry: Omit<Entry, "at">, durable = true): void {
    const whole = { at: Date.now(), ...entry };
    this.lines.append(whole, durable);
    this.apply(whole);
  }

  /** close rewrites an ended operation's file, without steps, checkpoints and token: they are not needed again. */
  close(status: Status, version: number): void {
    const entry: Entry = {
      at: Date.now(), began: this.began, dispatch: withoutToken(this.dispatch), hash: this.hash,
      generation: this.generation, status, version, canceled: this.canceled, committed: this.committed,
      stillborn: this.stillborn,
    };
    this.lines.replace(entry);
    this.apply(entry);
  }
}

function withoutToken(d: Dispatch): Dispatch { return { ...d, platform: { ...d.platform, token: "" } }; }

/** Journal is the folder of operations: one file of JSON lines for each, and a tombstone for each that was canceled
 * before it was dispatched. */
export class Journal {
  private readonly graves: string;

  constructor(private readonly dir: string) {
    this.graves = path.join(dir, "tombstones");
    fs.mkdirSync(this.graves, { recursive: true, mode: 0o700 });
  }

  /** open creates an operation that has no record yet. */
  open(d: Dispatch): Operation { return new Operation(d.operationId, this.lines(d.operationId), d, accepted(d)); }

  private lines(id: string): Lines { return new Lines(path.join(this.dir, `${id}.jsonl`)); }

  remove(id: string): void { fs.rmSync(path.join(this.dir, `${id}.jsonl`), { force: true }); }

  /** load reads all operations, oldest first. A file without a whole first line is of a dispatch that was never
   * answered: it is not an operation. */
  load(): Operation[] {
    const found: Operation[] = [];
    for (const name of fs.readdirSync(this.dir).filter((n) => n.endsWith(".jsonl"))) {
      const id = name.slice(0, -".jsonl".length);
      const lines = this.lines(id);
      const entries = lines.read<Entry>();
      const first = entries[0];
      if (first?.dispatch === undefined || first.status === undefined) {
        this.remove(id);
        continue;
      }
      const op = new Operation(id, lines, first.dispatch, first.status);
      for (const entry of entries) op.apply(entry);
      found.push(op);
    }
    return found.sort((a, b) => a.began - b.began);
  }

  /** bury stores a tombstone; it is on disk when the call returns. */
  bury(id: string, attempt: number): void { new Lines(path.join(this.graves, id)).replace(attempt); }

  exhume(id: string): void { fs.rmSync(path.join(this.graves, id), { force: true }); }

  /** tombstones returns the stored ones: by operation the attempt, and when it was stored. */
  tombstones(): Map<string, { attempt: number; at: number }> {
    const found = new Map<string, { attempt: number; at: number }>();
    for (const id of fs.readdirSync(this.graves).filter((name) => idPattern.test(name))) {
      const file = path.join(this.graves, id);
      found.set(id, { attempt: Number(fs.readFileSync(file, "utf8")), at: fs.statSync(file).mtimeMs });
    }
    return found;
  }
}

/** accepted returns the first status of an operation, and of one that begins again. */
export function accepted(d: Dispatch, members: Status["members"] = []): Status {
  const { operationId, attempt } = d;
  return { operationId, attempt, state: "accepted", phase: "accepted", percent: 0, message: "", members };
}

/** canceledBefore returns the status of an operation that was canceled before its dispatch arrived. */
export function canceledBefore(d: Dispatch): Status {
  const message = "it was canceled before its dispatch arrived";
  const error: OperationError = { code: "CANCELED", message, owner: "user", retryable: true };
  return { ...accepted(d), state: "canceled", phase: "canceled", message, error };
}

/** final returns a status with its end. Success counts even after a cancel meanwhile: the function decides. */
export function final(status: Status, why: Why | undefined, error: unknown): Status {
  const { waitsFor: _, error: __, ...end } = status;
  if (error === undefined) return { ...end, state: "succeeded", phase: "done", percent: 100 };
  if (why === "canceled") {
    const reason: OperationError = { code: "CANCELED", message: "canceled on request", owner: "user", retryable: false };
    return { ...end, state: "canceled", error: reason };
  }
  const failure = reasonOf(why, error).body();
  return { ...end, state: "failed", message: failure.message, error: failure };
}

/** reasonOf returns what the platform reads of an error. The text of an unexpected error stays in the log: it may
 * contain addresses or file names of the adapter. */
function reasonOf(why: Why | undefined, error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof Refusal) {
    return new Failure(error.body.code, "adapter", error.body.retryable === true, error.body.message);
  }
  if (why === "deadline" || (error instanceof Interrupted && error.why === "deadline")) {
    return new Failure("DEADLINE_EXCEEDED", "adapter", true, "the deadline passed before the operation ended");
  }
  if (isFull(error)) return new Failure("INTERNAL", "adapter", true, "the disk of the adapter's state is full");
  return new Failure("INTERNAL", "adapter", true, "the adapter had an internal error");
}

/** cancelAnswer returns the outcome of a request to cancel. */
export function cancelAnswer(op: Operation): CancelResult {
  const { state } = op.status;
  if (state === "canceled") return { outcome: "canceled", message: "the operation was stopped" };
  if (op.ended) return { outcome: "too_late", message: `the operation has ${state}` };
  if (op.committed) return { outcome: "too_late", message: "the operation can no longer be stopped safely" };
  return { outcome: "unknown", message: "the operation is stopping and has not ended yet" };
}

/** staleFence returns the refusal of an attempt that is lower than the highest. */
export function staleFence(op: Operation): Refusal {
  const message = `attempt ${op.dispatch.attempt} has been dispatched`;
  return new Refusal(409, { code: "STALE_FENCE", message, path: "attempt" });
}
