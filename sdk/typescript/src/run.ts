// One operation under way: what was requested, and the means to do it.
//
// An operation's function is a sequence of named, idempotent steps. After a kill it is called again from its first
// line: the same step is the same node task, with the bytes that were journalled before they were sent, and a finished
// step returns at once with its old result.
import { randomBytes } from "node:crypto";
import { digest } from "./canonical.js";
import {
  boundWork, clip, Failure, healths, maxDetail, maxEvidence, maxMessage, memberStatuses, of, reachable, sizeOf,
  targetsOf, type Dispatch, type Health, type Instance, type Member, type MemberStatus, type Settings, type Status,
  type Work,
} from "./contract.js";
import { mask, type Log } from "./log.js";
import type { Entry, Operation } from "./operation.js";
import { asFailure, PlatformClient, traceId } from "./platform.js";
import { every, Interrupted, signal, TimedOut, using, within, type Why } from "./scope.js";
import { teardown, timed, type Task, type TaskResult } from "./tasks.js";

/** Keeper is what a run needs of the engine. All refuse a run that is not the operation's current run. */
export interface Keeper {
  readonly log: Log;
  readonly stopped: AbortSignal;
  update(run: Run, durable: boolean, change: (status: Status) => void): void;
  commit(run: Run): void;
  /** keep writes a step or a checkpoint to disk. Many calls wait for the disk at the same time. */
  keep(run: Run, entry: Pick<Entry, "step" | "spec" | "saved">): Promise<void>;
}

const cleanupTime = 120_000;
const reportPause = 500;
const reportSeconds = 5;
const forcedMargin = 5; // seconds a forced run waits for a task beyond the task's own time
const maxTimer = 2 ** 31 - 1;
const maxSaved = 256 << 10;
const maxKey = 112; // leaves space for the suffix that distinguishes looks: the public API takes keys of 128

/** Run is what an operation's function works with. Everything in it is cut off when the operation is canceled, exceeds
 * its deadline, or is begun again with force: its calls throw Interrupted then. */
export class Run {
  readonly client: PlatformClient;
  readonly generation: number;
  readonly dispatch: Dispatch;
  readonly log: Log;
  private readonly controller = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private reporting: NodeJS.Timeout | undefined;

  constructor(private readonly keeper: Keeper, readonly op: Operation) {
    this.dispatch = op.dispatch;
    const { kind, correlationId, instance } = this.dispatch;
    this.generation = op.generation;
    const traceparent = this.dispatch.traceparent ?? "", known = traceId(traceparent);
    this.log = keeper.log.bind({ operation: op.id, kind, instance: instance.id, correlation_id: correlationId,
      ...(known === "" ? {} : { trace_id: known }) });
    this.client = new PlatformClient(this.dispatch.platform, correlationId, this.log, true, traceparent);
    this.setDeadline(this.dispatch.deadline);
  }

  // -- the request

  /** signal ends when the run is interrupted. */
  get signal(): AbortSignal { return this.controller.signal; }
  /** why is the reason for which the run was interrupted. */
  get why(): Why | undefined { return this.signal.reason instanceof Interrupted ? this.signal.reason.why : undefined; }
  get instance(): Instance { return this.dispatch.instance; }
  /** config is the instance's, valid by the app's schema. */
  get config(): Settings { return (this.instance.config ?? {}) as Settings; }
  /** members are all members of the instance: the app must forget every other member. */
  get members(): Member[] { return this.dispatch.members; }
  /** targets are the members that the operation acts on. */
  get targets(): Member[] { return targetsOf(this.dispatch); }
  /** change is the desired change of kinds that have one; empty otherwise. */
  get change(): Settings { return (this.dispatch.change ?? {}) as Settings; }
  /** force reports that the caller chose to finish now, though work is lost and nodes cannot be reached. */
  get force(): boolean { return this.dispatch.force === true; }
  /** of returns the members of one component, in the order of their indexes. */
  of(component: string): Member[] { return of(this.members, component); }
  /** reaches reports whether a node task can be requested: under force, not on an unreachable node. */
  reaches(member: Member): boolean { return !this.force || reachable(member); }

  // -- the reports

  /** progress reports what is being done and how much is done, 0 to 100. It never decreases. */
  progress(phase: string, percent: number, message: string): void {
    this.update(this.op.status.phase !== phase, (s) => {
      s.phase = clip(phase, 100);
      s.message = clip(mask(message), maxMessage);
      s.percent = Math.max(s.percent, Math.min(Math.round(percent), 100));
    });
  }

  /** member reports the state of a member; detail is an object of at most 4 KiB. */
  member(id: string, status: MemberStatus, health: Health, detail?: object): void {
    if (!memberStatuses.has(status) || !healths.has(health)) {
      throw new Error(`member ${id}: ${status}, ${health} are not in the contract`);
    }
    if (detail !== undefined && sizeOf(detail) > maxDetail) {
      throw new Error(`detail of member ${id} is larger than ${maxDetail} bytes`);
    }
    const update = { id, status, health, ...(detail === undefined ? {} : { detail }) };
    this.update(true, (s) => {
      const at = s.members.findIndex((m) => m.id === id);
      if (at < 0) s.members.push(update);
      else s.members[at] = update;
    });
  }

  /** evidence records observations that prove the outcome; all of it is at most 64 KiB. */
  evidence(key: string, value: unknown): void {
    this.update(true, (s) => {
      s.evidence = { ...s.evidence, [key]: value };
      if (sizeOf(s.evidence) > maxEvidence) throw new Error(`evidence ${key}: more than ${maxEvidence} bytes in all`);
    });
  }

  /** waitsFor reports to people which work the operation waits for now; an empty list ends the report. */
  waitsFor(work: Work[]): void {
    const shown = boundWork(work);
    if (JSON.stringify(this.op.status.waitsFor ?? []) === JSON.stringify(shown)) return;
    this.update(false, (s) => { s.waitsFor = shown; });
  }

  /** once returns the value saved under name, created and saved the first time: a value that is random or depends on
   * the time stays the same after a kill. Never save a secret in clear. */
  async once(name: string, make: () => string): Promise<string> {
    const held = this.op.saved.get(name);
    if (held !== undefined) return held;
    const value = make();
    if (value.length > maxSaved) throw new Error(`checkpoint ${name}: more than ${maxSaved} characters`);
    await this.keeper.keep(this, { saved: { [name]: value } });
    return value;
  }

  /** commit marks the point after which stopping would do harm: from here on a cancel is answered "too late". The run
   * is interrupted when the cancel arrived first. */
  commit(): void {
    this.signal.throwIfAborted();
    if (this.op.canceled) throw new Interrupted("canceled");
    this.keeper.commit(this);
  }

  // -- node tasks

  /** do runs a node task on a member, waits for it, and requires that it succeeds. The step names it within the
   * operation: the same step is the same task, also after a kill. */
  async do(member: Member, step: string, task: Task): Promise<TaskResult> {
    return (await this.attempt(member, step, task)).require(step, member);
  }

  /** attempt is do, but returns a task that did not succeed. What it sends is on disk before it is sent. */
  async attempt(member: Member, step: string, task: Task): Promise<TaskResult> {
    this.reach(member, step);
    const key = this.key(member, step);
    if (!this.op.steps.has(key)) await this.keeper.keep(this, { step: key, spec: task });
    return this.send(member, step, key, this.op.steps.get(key) as Task);
  }

  /** look is attempt for a task that only reads: every call is a new task and nothing is journalled. */
  async look(member: Member, step: string, task: Task): Promise<TaskResult> {
    this.reach(member, step);
    return this.send(member, step, `${this.key(member, step)}.${randomBytes(6).toString("hex")}`, task);
  }

  /** ask is look for at most so many seconds, whatever becomes of the node: undefined when it did not answer or the task
   * did not succeed. */
  async ask(member: Member, step: string, task: Task, seconds = 10): Promise<TaskResult | undefined> {
    return askFor(member, seconds, () => this.look(member, step, timed(task, seconds)));
  }

  private key(member: Member, step: string): string {
    const key = `${this.op.id}.${this.generation}.${member.id}.${step}`;
    return /^[!-~]*$/.test(key) && key.length <= maxKey ? key : `${this.op.id}.${this.generation}.${digest(member.id, step)}`;
  }

  private reach(member: Member, step: string): void {
    signal().throwIfAborted();
    if (!this.reaches(member)) throw away(member, step);
  }

  /** Under force a task is waited for only a little longer than it may take: its node may be lost by now. */
  private async send(member: Member, step: string, key: string, task: Task): Promise<TaskResult> {
    const scope = signal();
    const send = (): Promise<TaskResult> => this.client.run(member.id, key, task);
    try {
      return await (this.force ? within((task.timeoutSeconds ?? 60) + forcedMargin, send) : send());
    } catch (error) {
      if (this.force && error instanceof TimedOut && !scope.aborted) throw away(member, step);
      throw asFailure(step, error);
    }
  }

  /** each works on several members at once, eight at most, and throws the first error after all have ended; the others
   * are cut off by then. */
  each(members: readonly Member[], work: (member: Member) => Promise<void>): Promise<void> { return every(members, work); }

  /** cleanup is for undoing things after the run was interrupted, for at most two minutes; its errors are logged. When
   * the adapter stops, or the operation begins again with force, the work goes on and nothing is undone. */
  async cleanup(undo: () => Promise<void>): Promise<void> {
    if (this.why === "stopping" || this.why === "forced") return;
    const scope = AbortSignal.any([AbortSignal.timeout(cleanupTime), this.keeper.stopped]);
    await using(scope, undo).catch((error: unknown) => {
      this.log.warn("not everything was undone", { error: String(error) });
    });
  }

  /** undoing calls undo, as a cleanup, when work fails or is interrupted. */
  async undoing(undo: () => Promise<void>, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      await this.cleanup(undo);
      throw error;
    }
  }

  /** teardown deletes the sandboxes of members and reports each as removed once its node reports that nothing is left.
   * Under force a node that cannot be reached is passed over, and the evidence states it. */
  async teardown(members: readonly Member[]): Promise<void> {
    const left: Record<string, number> = {};
    const passed: string[] = [];
    await this.each(members, async (member) => {
      try {
        const { residue } = await this.do(member, "teardown", teardown(this.force ? 30 : 300));
        left[member.id] = residue;
        if (residue > 0) {
          throw new Failure("RESIDUE_LEFT", "node", true, `member ${member.id} left ${residue} things on its node`);
        }
        this.member(member.id, "removed", "unknown");
      } catch (error) {
        if (!this.force || !isUnreachable(error)) throw error;
        passed.push(member.id);
        this.member(member.id, "removed", "unknown", { tornDown: false });
      }
    });
    if (passed.length > 0) this.evidence("notTornDown", passed.sort());
    this.evidence("residue", left);
  }

  // -- for the engine

  interrupt(why: Why): void { if (!this.signal.aborted) this.controller.abort(new Interrupted(why)); }

  /** extend takes over the token and the deadline of a higher attempt. */
  extend(d: Dispatch): void {
    this.client.take(d.platform);
    this.setDeadline(d.deadline);
  }

  release(): void {
    clearTimeout(this.timer);
    clearTimeout(this.reporting);
  }

  private setDeadline(deadline: string): void {
    clearTimeout(this.timer);
    const left = Date.parse(deadline) - Date.now();
    if (left <= 0) return this.interrupt("deadline");
    this.timer = setTimeout(() => this.setDeadline(deadline), Math.min(left, maxTimer));
  }

  private update(durable: boolean, change: (status: Status) => void): void {
    this.keeper.update(this, durable, change);
    this.reportSoon();
  }

  /** Changes are pushed at most every half second; a push that fails is not repeated: the platform reads the feed. */
  private reportSoon(): void {
    this.reporting ??= setTimeout(() => {
      this.reporting = undefined;
      if (this.signal.aborted) return;
      using(this.signal, () => within(reportSeconds, () => this.client.report(this.op.status)))
        .catch((error: unknown) => this.log.debug("the platform did not accept the report", { error: String(error) }));
    }, reportPause);
  }
}

/** askFor bounds a read of a member: undefined when it did not answer or did not succeed. */
export async function askFor(member: Member, seconds: number, look: () => Promise<TaskResult>): Promise<TaskResult | undefined> {
  if (!reachable(member)) return undefined;
  try {
    const result = await within(seconds, look);
    return result.succeeded ? result : undefined;
  } catch (error) {
    signal().throwIfAborted();
    if (error instanceof TimedOut || error instanceof Failure) return undefined;
    throw error;
  }
}

function away(member: Member, step: string): Failure {
  const message = `step ${step} on member ${member.id}: node ${member.node.name} cannot be reached`;
  return new Failure("NODE_UNREACHABLE", "node", true, message);
}

/** isUnreachable reports whether a node task failed because its node cannot be reached. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof Failure && error.code === "NODE_UNREACHABLE";
}
