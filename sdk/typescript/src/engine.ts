// The engine takes dispatches, runs them, answers cancels, and resumes after a kill the operations that had not ended.
import * as path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure, Refusal, type CancelResult, type Dispatch, type Status } from "./contract.js";
import { specHash } from "./canonical.js";
import { Feed } from "./feed.js";
import { lock } from "./files.js";
import { Instances } from "./instances.js";
import type { Log } from "./log.js";
import {
  accepted, cancelAnswer, canceledBefore, final, Journal, staleFence, type Entry, type Operation,
} from "./operation.js";
import { Run, type Keeper } from "./run.js";
import { Interrupted, using } from "./scope.js";

/** Bounds of what an engine keeps; times in milliseconds. */
export const bounds = {
  running: 64, // operations at once; more are accepted and wait
  operations: 20_000, // remembered; beyond that the oldest ended ones are forgotten
  retention: 30 * 24 * 3600 * 1000, // how long ended operations are remembered
  cancelWait: 10_000, // how long the answer to a cancel waits for the run to end
  tombstones: 10_000,
  tombstoneLife: 3600 * 1000,
  endPause: 1000, // between two tries to write an end that the disk refuses
};

/** Perform is an operation's function. */
export type Perform = (run: Run) => Promise<void>;
/** Find returns the function for a kind; undefined where this build has none. */
export type Find = (app: string, kind: string) => Perform | undefined;
/** Taken is the answer to a dispatch; done reports that nothing is left to do. */
export interface Taken { status: Status; done: boolean }

export class Engine implements Keeper {
  readonly feed: Feed;
  readonly instances: Instances;
  private readonly journal: Journal;
  private readonly tombstones: ReturnType<Journal["tombstones"]>;
  private readonly operations = new Map<string, Operation>();
  private readonly running = new Map<Operation, Promise<void>>();
  private readonly stopping = new AbortController();
  private readonly unlock: () => void;
  private readonly waiting: (() => void)[] = [];
  private slots = bounds.running;

  constructor(dir: string, readonly log: Log, private readonly find: Find) {
    this.unlock = lock(dir);
    this.feed = new Feed(dir);
    this.instances = new Instances(path.join(dir, "instances"));
    this.journal = new Journal(path.join(dir, "operations"));
    this.tombstones = this.journal.tombstones();
  }

  /** stopped ends when the engine stops. */
  get stopped(): AbortSignal { return this.stopping.signal; }

  knows(id: string): boolean { return this.operations.has(id); }

  /** start resumes every operation that has not ended. */
  start(): void {
    for (const op of this.journal.load()) {
      this.operations.set(op.id, op);
      this.feed.put(op.status, op.ended ? op.version : this.feed.version());
      if (op.ended) continue;
      this.log.info("resuming operation", { operation: op.id, kind: op.dispatch.kind, phase: op.status.phase });
      this.begin(op);
    }
    this.sweep();
  }

  /** stop ends the runs without ending their operations, which the next start resumes. */
  async stop(): Promise<void> {
    this.stopping.abort(new Interrupted("stopping"));
    for (const op of this.operations.values()) op.run?.interrupt("stopping");
    await Promise.all(this.running.values());
    this.unlock();
  }

  /** take begins, repeats or refuses a dispatch. The operation is on disk when it returns. */
  take(d: Dispatch): Taken {
    const op = this.operations.get(d.operationId);
    if (op !== undefined) return this.repeat(op, d);
    const buried = d.attempt <= (this.tombstones.get(d.operationId)?.attempt ?? 0);
    return buried ? this.stillborn(d) : this.fresh(d);
  }

  private fresh(d: Dispatch): Taken {
    const op = this.journal.open(d);
    op.record({ dispatch: d, hash: specHash(d), generation: d.attempt, status: op.status });
    try {
      this.instances.learn(d);
      this.feed.put(op.status, this.feed.version());
    } catch (error) {
      this.journal.remove(op.id); // it is refused, so the next start must not resume it
      throw error;
    }
    this.operations.set(op.id, op);
    this.begin(op);
    if (this.operations.size > bounds.operations) this.sweep();
    return { status: op.status, done: false };
  }

  /** stillborn answers a dispatch that arrives after its cancel: nothing of it runs. */
  private stillborn(d: Dispatch): Taken {
    const op = this.journal.open(d);
    op.apply({ at: Date.now(), dispatch: d, hash: specHash(d), generation: d.attempt, canceled: true, stillborn: true });
    this.publish(op, canceledBefore(d));
    this.operations.set(op.id, op);
    return { status: op.status, done: true };
  }

  private repeat(op: Operation, d: Dispatch): Taken {
    if (op.hash !== specHash(d)) {
      const message = "the operation was dispatched with another specification";
      throw new Refusal(409, { code: "BODY_MISMATCH", message });
    }
    if (d.attempt < op.dispatch.attempt) throw staleFence(op);
    if (d.attempt > op.dispatch.attempt) this.raise(op, d);
    return { status: op.status, done: op.ended };
  }

  /** raise takes a higher attempt: a run under way goes on with the new deadline and token, or begins again when force
   * came with the attempt; a failed run begins again; one that succeeded or was canceled stays as it is. */
  private raise(op: Operation, d: Dispatch): void {
    const failed = op.status.state === "failed";
    const before = op.dispatch;
    if (op.ended && !failed) {
      op.dispatch = { ...before, attempt: d.attempt };
      try {
        this.publish(op, { ...op.status, attempt: d.attempt });
      } catch (error) {
        op.dispatch = before; // or a repeat would get the status of the earlier attempt
        throw error;
      }
    } else if (failed || (d.force === true && before.force !== true)) {
      this.again(op, d, failed);
    } else {
      // A run that began with force keeps it.
      op.record({ dispatch: { ...d, force: before.force === true }, status: { ...op.status, attempt: d.attempt } });
      this.feed.put(op.status, this.feed.version());
      op.run?.extend(d);
    }
  }

  /** again begins an operation again. One that was under way keeps the states of its members and its point of no
   * return. */
  private again(op: Operation, d: Dispatch, failed: boolean): void {
    const entry: Omit<Entry, "at"> = { dispatch: d, generation: d.attempt };
    if (failed) op.record({ ...entry, status: accepted(d) });
    else op.record({ ...entry, status: accepted(d, op.status.members), committed: op.committed });
    this.feed.put(op.status, this.feed.version());
    op.run?.interrupt("forced");
    this.begin(op);
  }

  /** begin runs an operation as soon as its earlier run, if there is one, has ended. */
  private begin(op: Operation): void {
    const before = this.running.get(op) ?? Promise.resolve();
    const run = new Run(this, op);
    op.run = run;
    if (op.canceled) run.interrupt("canceled");
    const over = before.then(() => using(run.signal, () => this.execute(run))).finally(() => {
      run.release();
      if (op.run === run) op.run = undefined;
      if (this.running.get(op) === over) this.running.delete(op);
    });
    this.running.set(op, over);
  }

  private async execute(run: Run): Promise<void> {
    const began = run.op.status.state !== "accepted";
    let error: unknown;
    const got = await this.slot(run.signal);
    try {
      // A run that was interrupted before it did anything has nothing to undo.
      if (!got && !(began && (run.why === "canceled" || run.why === "deadline"))) run.signal.throwIfAborted();
      await this.call(run);
    } catch (caught) {
      error = caught ?? new Error("the app threw nothing");
    } finally {
      if (got) this.free();
    }
    await this.end(run, error);
  }

  private async call(run: Run): Promise<void> {
    const work = this.find(run.instance.app, run.dispatch.kind);
    if (work === undefined) {
      throw new Failure("UNSUPPORTED_OPERATION", "adapter", false, `this build does not support ${run.dispatch.kind}`);
    }
    this.update(run, true, (status) => { status.state = "running"; });
    run.log.info("operation running", { attempt: run.dispatch.attempt });
    await work(run);
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

  /** end writes how a run ended. A run that is only interrupted has no end to write. A write that the journal refuses,
   * such as on a full disk, is repeated until it succeeds. */
  private async end(run: Run, error: unknown): Promise<void> {
    for (let tried = false; !this.stopped.aborted; tried = true) {
      if (run.why === "stopping" || run.why === "forced" || run.op.generation !== run.generation) return;
      try {
        if (!run.op.ended) this.publish(run.op, final(run.op.status, run.why, error));
        this.instances.settle(run.op.dispatch, run.op.status);
        break;
      } catch (failure) {
        if (!tried) run.log.error("the end is not journalled; trying again until it is", { error: String(failure) });
        await sleep(bounds.endPause, undefined, { signal: this.stopped }).catch(() => undefined);
      }
    }
    const { state, error: said } = run.op.status;
    const shown = said?.code === "INTERNAL" ? error : String(error);
    run.log.info(`operation ${state}`, error === undefined ? {} : { error: shown });
  }

  private publish(op: Operation, status: Status): void {
    const version = this.feed.version();
    op.close(status, version);
    this.feed.put(status, version);
  }

  update(run: Run, durable: boolean, change: (status: Status) => void): void {
    this.stands(run);
    const status = structuredClone(run.op.status);
    change(status);
    if (durable) run.op.record({ status }, false);
    else run.op.status = status;
    this.feed.put(status, this.feed.version());
  }

  commit(run: Run): void {
    this.stands(run);
    run.op.record({ committed: true });
  }

  async keep(run: Run, entry: Pick<Entry, "step" | "spec" | "saved">): Promise<void> {
    this.stands(run);
    const whole = { at: Date.now(), ...entry };
    run.op.lines.append(whole, false);
    await run.op.lines.sync();
    this.stands(run);
    run.op.apply(whole); // only now: a step is on disk before it is known
  }

  private stands(run: Run): void {
    if (run.op.generation !== run.generation) throw new Interrupted("forced");
    if (run.op.ended) throw new Error("the operation has ended");
  }

  /** cancel requests that a run stops, if that is still safe, and returns the outcome. */
  async cancel(id: string, attempt: number): Promise<CancelResult> {
    const op = this.operations.get(id);
    if (op === undefined) return this.bury(id, attempt);
    if (attempt < op.dispatch.attempt) throw staleFence(op);
    if (op.ended || op.committed) return cancelAnswer(op);
    op.record({ canceled: true });
    op.run?.interrupt("canceled");
    const over = new AbortController();
    const waited = sleep(bounds.cancelWait, undefined, { signal: over.signal }).catch(() => undefined);
    await Promise.race([this.running.get(op), waited]);
    over.abort();
    return cancelAnswer(op);
  }

  /** bury leaves a tombstone: a dispatch that is under way when its operation is canceled may arrive after the cancel. */
  private bury(id: string, attempt: number): CancelResult {
    if (attempt > (this.tombstones.get(id)?.attempt ?? 0)) {
      this.journal.bury(id, attempt);
      this.tombstones.set(id, { attempt, at: Date.now() });
      if (this.tombstones.size > bounds.tombstones) this.exhume();
    }
    const message = "this operation was never dispatched; this attempt can no longer start it";
    return { outcome: "unknown", tombstone: true, message };
  }

  private exhume(): void {
    for (const [id, { at }] of this.tombstones) {
      if (Date.now() - at < bounds.tombstoneLife) continue;
      this.journal.exhume(id);
      this.tombstones.delete(id);
    }
  }

  /** sweep forgets operations that ended long ago, and more when there are too many. */
  private sweep(): void {
    const old = [...this.operations.values()].filter((op) => op.ended).sort((a, b) => a.touched - b.touched);
    const tooMany = this.operations.size - Math.floor(bounds.operations * 0.9);
    for (const [n, op] of old.entries()) {
      if (n >= tooMany && Date.now() - op.touched < bounds.retention) return;
      this.journal.remove(op.id);
      this.operations.delete(op.id);
      this.feed.drop(op.id);
    }
  }
}
