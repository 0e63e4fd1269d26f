// The engine takes dispatches, runs them, and resumes after a kill what had not ended.
import * as path from "node:path";
import type { App } from "./app.js";
import { specHash } from "./canonical.js";
import {
  clip, ended, Failure, maxMessage, refuse, Refusal, type Asked, type CancelResult, type Dispatch, type OperationError, type Status,
} from "./contract.js";
import { Feed } from "./feed.js";
import { lock } from "./files.js";
import { Instances } from "./instances.js";
import { accepted, isEnded, Journal, Operation, type Entry } from "./operation.js";
import { fault } from "./schema.js";
import { Interrupted, Run, type Keeper } from "./run.js";

const maxRunning = 64; // operations at once; more are accepted and wait
const maxOperations = 10_000; // remembered; the oldest ended ones make room
const cancelWait = 10_000; // how long the answer to a cancel waits for the run to end

export class Engine implements Keeper {
  readonly feed: Feed;
  readonly instances: Instances;
  private readonly journal: Journal;
  private readonly operations = new Map<string, Operation>();
  private readonly running = new Map<Operation, Promise<void>>();
  private slots = maxRunning;
  private readonly waiting: (() => void)[] = [];
  private stopping = false;

  constructor(private readonly app: App, dir: string) {
    lock(dir);
    this.feed = new Feed(dir);
    this.instances = new Instances(path.join(dir, "instances"));
    this.journal = new Journal(path.join(dir, "operations"));
  }

  /** start resumes every operation that has not ended. */
  start(): void {
    for (const op of this.journal.load()) {
      this.operations.set(op.id, op);
      if (isEnded(op)) {
        this.feed.put(op.status, op.version);
        continue;
      }
      this.feed.put(op.status, this.feed.version());
      this.begin(op);
    }
  }

  /** stop ends the runs without ending the operations: they are resumed at the next start. */
  async stop(): Promise<void> {
    this.stopping = true;
    for (const op of this.operations.values()) op.run?.interrupt("stopping");
    await Promise.all(this.running.values());
  }

  /** admit refuses what would not be begun: another app, a kind that it cannot do, what it finds unsafe. */
  admit(asked: Asked): void {
    if (asked.instance.app !== this.app.info.slug) throw unsupported("this adapter does not run the app", "instance.app");
    if (!this.app.info.operations.includes(asked.kind)) throw unsupported("this adapter does not support the operation kind", "kind");
    // What is only taken away keeps whatever config it had.
    const takesAway = asked.kind === "instance.decommission" || asked.kind === "member.remove";
    const wrong = takesAway ? undefined : fault(this.app.info.configSchema, asked.instance.config ?? {}, "instance.config");
    if (wrong !== undefined) throw refuse("CONFIG_INVALID", wrong.path, `${wrong.path} ${wrong.message}`);
    this.app.check(asked);
  }

  /** take begins, repeats or refuses a dispatch; done says that there is nothing left to do. */
  take(d: Dispatch): { status: Status; done: boolean } {
    const hash = specHash(d);
    const op = this.operations.get(d.operationId);
    if (op !== undefined) return this.repeat(op, d, hash);
    this.admit(d);
    return this.fresh(d, hash);
  }

  private fresh(d: Dispatch, hash: string): { status: Status; done: boolean } {
    const op = new Operation(d.operationId, d, accepted(d));
    this.journal.append(op, { at: Date.now(), dispatch: d, hash, generation: d.attempt, status: op.status }, true);
    this.operations.set(op.id, op);
    this.instances.learn(d);
    this.feed.put(op.status, this.feed.version());
    this.begin(op);
    this.sweep();
    return { status: op.status, done: false };
  }

  private repeat(op: Operation, d: Dispatch, hash: string): { status: Status; done: boolean } {
    if (op.hash !== hash) throw new Refusal(409, { code: "BODY_MISMATCH", message: "the operation was dispatched with another specification" });
    if (d.attempt < op.dispatch.attempt) throw staleFence(op);
    if (d.attempt > op.dispatch.attempt) this.raise(op, d);
    return { status: op.status, done: isEnded(op) };
  }

  /** raise takes a higher attempt: a run under way goes on with the new deadline and token, or begins anew when force
   * came with the attempt; a failed one begins anew; what succeeded or was canceled stays. */
  private raise(op: Operation, d: Dispatch): void {
    const failed = op.status.state === "failed";
    if (isEnded(op) && !failed) {
      op.dispatch = { ...op.dispatch, attempt: d.attempt };
      this.publish(op, { ...op.status, attempt: d.attempt });
    } else if (failed || (d.force === true && op.dispatch.force !== true)) {
      this.again(op, d, failed);
    } else {
      const status = { ...op.status, attempt: d.attempt };
      // Force is not taken back from a run that began with it.
      this.journal.append(op, { at: Date.now(), dispatch: { ...d, force: op.dispatch.force === true }, status }, true);
      this.feed.put(status, this.feed.version());
      op.run?.extend(d);
    }
  }

  /** again begins an operation anew. What its members came to and the point of no return stay true of one that was
   * under way. */
  private again(op: Operation, d: Dispatch, failed: boolean): void {
    const status = { ...accepted(d), members: failed ? [] : op.status.members };
    const entry: Entry = { at: Date.now(), dispatch: d, generation: d.attempt, status };
    this.journal.append(op, failed ? entry : { ...entry, committed: op.committed }, true);
    this.feed.put(status, this.feed.version());
    op.run?.interrupt("forced");
    this.begin(op);
  }

  /** begin runs an operation as soon as the run before it, if there is one, has let go. */
  private begin(op: Operation): void {
    const before = this.running.get(op);
    const run = new Run(this, op, op.dispatch);
    op.run = run;
    if (op.canceled) run.interrupt("canceled");
    const over = (before ?? Promise.resolve()).then(() => this.execute(run)).finally(() => {
      run.release();
      if (op.run === run) op.run = undefined;
      if (this.running.get(op) === over) this.running.delete(op);
    });
    this.running.set(op, over);
  }

  private async execute(run: Run): Promise<void> {
    const began = run.op.status.state !== "accepted";
    try {
      const got = await this.slot(run.signal);
      try {
        // What was interrupted before it did anything has nothing to undo.
        if (!got && !began) throw run.signal.reason;
        this.update(run, true, (s) => { s.state = "running"; });
        await work(this.app, run)(run);
      } finally {
        if (got) this.free();
      }
      this.end(run, undefined);
    } catch (error) {
      this.end(run, error);
    }
  }

  /** slot waits for a free slot; false when the signal ended first. */
  private slot(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (this.slots > 0) {
      this.slots--;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const wake = (): void => { signal.removeEventListener("abort", give); resolve(true); };
      const give = (): void => { this.waiting.splice(this.waiting.indexOf(wake), 1); resolve(false); };
      this.waiting.push(wake);
      signal.addEventListener("abort", give, { once: true });
    });
  }

  private free(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.slots++;
    else next();
  }

  /** end writes how a run ended. Success counts even when a cancel came meanwhile; a run that is only interrupted has
   * no end to write. */
  private end(run: Run, error: unknown): void {
    if (run.why === "stopping" || run.why === "forced" || run.op.generation !== run.generation || isEnded(run.op)) return;
    const { waitsFor: _, ...status } = run.op.status;
    try {
      this.publish(run.op, { ...status, ...outcome(run, error) });
      this.instances.settle(run.dispatch, run.op.status);
    } catch (failure) {
      // Nothing was published: the operation is not over, and the next start will resume it.
      log("error", run, "end of operation not journalled", failure);
    }
    log("info", run, `operation ${run.op.status.state}`, error);
  }

  private publish(op: Operation, status: Status): void {
    const version = this.feed.version();
    this.journal.close(op, status, version);
    this.feed.put(status, version);
  }

  update(run: Run, durable: boolean, change: (status: Status) => void): void {
    this.stands(run);
    const status = structuredClone(run.op.status);
    change(status);
    if (durable) this.journal.append(run.op, { at: Date.now(), status }, false);
    else run.op.status = status;
    this.feed.put(status, this.feed.version());
  }

  commit(run: Run): void {
    this.stands(run);
    this.journal.append(run.op, { at: Date.now(), committed: true }, true);
  }

  async keepStep(run: Run, step: string, spec: object): Promise<void> {
    this.stands(run);
    await this.journal.appendStep(run.op, { at: Date.now(), step, spec });
    this.stands(run);
  }

  private stands(run: Run): void {
    if (run.op.generation !== run.generation) throw new Interrupted("forced");
    if (isEnded(run.op)) throw new Error("the operation has ended");
  }

  /** cancel asks a run to stop, if that is still safe, and says what came of it. */
  async cancel(id: string, attempt: number): Promise<CancelResult> {
    const op = this.operations.get(id);
    if (op === undefined) return { outcome: "unknown", message: "no such operation has been dispatched" };
    if (attempt < op.dispatch.attempt) throw staleFence(op);
    if (isEnded(op) || op.committed) return canceled(op);
    this.journal.append(op, { at: Date.now(), canceled: true }, true);
    op.run?.interrupt("canceled");
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), cancelWait);
    await Promise.race([this.running.get(op), new Promise((resolve) => timeout.signal.addEventListener("abort", resolve))]);
    clearTimeout(timer);
    return canceled(op);
  }

  get isStopping(): boolean { return this.stopping; }

  /** sweep forgets the operations that ended first when there are too many. */
  private sweep(): void {
    if (this.operations.size <= maxOperations) return;
    const old = [...this.operations.values()].filter(isEnded).sort((a, b) => a.touched - b.touched);
    for (const op of old.slice(0, maxOperations / 10)) {
      this.journal.remove(op.id);
      this.operations.delete(op.id);
      this.feed.drop(op.id);
    }
  }
}

/** work is the function for a run's kind: one that an earlier build began may have none in this one. */
function work(app: App, run: Run): (run: Run) => Promise<void> {
  const found = app.operations[run.dispatch.kind];
  if (found === undefined) throw new Failure("UNSUPPORTED_OPERATION", "adapter", false, `this build does not support ${run.dispatch.kind}`);
  return found;
}

function canceled(op: Operation): CancelResult {
  if (op.status.state === "canceled") return { outcome: "canceled", message: "the operation was stopped" };
  if (ended(op.status.state)) return { outcome: "too_late", message: `the operation has ${op.status.state}` };
  if (op.committed) return { outcome: "too_late", message: "the operation can no longer be stopped safely" };
  return { outcome: "unknown", message: "the operation was asked to stop and has not ended yet" };
}

/** outcome is the terminal part of a status. Text of unexpected errors stays in the log. */
function outcome(run: Run, error: unknown): Pick<Status, "state" | "phase" | "percent" | "message"> & { error?: OperationError } {
  const { phase, percent, message } = run.op.status;
  if (error === undefined) return { state: "succeeded", phase: "done", percent: 100, message };
  if (run.why === "canceled") {
    return { state: "canceled", phase, percent, message, error: { code: "CANCELED", message: "canceled on request", owner: "user", retryable: false } };
  }
  const failure = reason(run, error);
  return { state: "failed", phase, percent, message: failure.message, error: failure };
}

function reason(run: Run, error: unknown): OperationError {
  if (error instanceof Failure) return { code: error.code, message: clip(error.message, maxMessage), owner: error.owner, retryable: error.retryable };
  if (run.why === "deadline") return { code: "DEADLINE_EXCEEDED", message: "the deadline passed before the operation ended", owner: "adapter", retryable: true };
  return { code: "INTERNAL", message: "the adapter met an internal error", owner: "adapter", retryable: true };
}

function staleFence(op: Operation): Refusal {
  return new Refusal(409, { code: "STALE_FENCE", message: `attempt ${op.dispatch.attempt} has been dispatched`, path: "attempt" });
}

function unsupported(message: string, at: string): Refusal {
  return new Refusal(422, { code: "UNSUPPORTED_OPERATION", message, path: at });
}

function log(level: string, run: Run, message: string, error: unknown): void {
  const line = { level, time: new Date().toISOString(), operation: run.op.id, kind: run.dispatch.kind, correlationId: run.dispatch.correlationId, message };
  console.error(JSON.stringify(error === undefined ? line : { ...line, error: String(error) }));
}
