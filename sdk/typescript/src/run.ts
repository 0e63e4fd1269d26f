// One operation under way: what was asked, and the means to do it. An operation's function is a sequence of named,
// idempotent steps: after a kill it is called again, and finished steps answer at once with their old results.
import { randomBytes } from "node:crypto";
import {
  clip, Failure, maxDetail, maxEvidence, maxMessage, maxWork, reachable, targetsOf, type Dispatch, type Health, type Member, type MemberStatus,
  type Status, type Work,
} from "./contract.js";
import { asFailure, PlatformClient, taskFailure, type Task, type TaskResult } from "./platform.js";
import type { Operation } from "./operation.js";

export type Why = "canceled" | "deadline" | "stopping" | "forced";

/** Interrupted is why a run's signal ended. */
export class Interrupted extends Error {
  constructor(readonly why: Why) { super(`the operation was interrupted: ${why}`); }
}

/** Keeper is what a run needs of the engine. All refuse a run that no longer stands for its operation. */
export interface Keeper {
  update(run: Run, durable: boolean, change: (status: Status) => void): void;
  commit(run: Run): void;
  /** keepStep puts on disk what a step is about to send. Many steps wait for the disk at the same time. */
  keepStep(run: Run, step: string, spec: object): Promise<void>;
}

const cleanupTime = 120_000;
const parallelMembers = 8;
const reportPause = 500;
const forcedMargin = 5; // seconds a forced run waits for a task beyond the task's own time
const maxTimer = 2 ** 31 - 1;

export class Run {
  readonly client: PlatformClient;
  readonly generation: number;
  private readonly controller = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private reporting: NodeJS.Timeout | undefined;

  constructor(private readonly keeper: Keeper, readonly op: Operation, readonly dispatch: Dispatch) {
    this.generation = op.generation;
    this.client = new PlatformClient(dispatch.platform, dispatch.correlationId, true);
    this.setDeadline(dispatch.deadline);
  }

  get signal(): AbortSignal { return this.controller.signal; }
  get force(): boolean { return this.dispatch.force === true; }
  get why(): Why | undefined { return this.signal.reason instanceof Interrupted ? this.signal.reason.why : undefined; }
  targets(): Member[] { return targetsOf(this.dispatch); }

  interrupt(why: Why): void { if (!this.signal.aborted) this.controller.abort(new Interrupted(why)); }

  /** extend takes over the token and the deadline of a higher attempt. */
  extend(d: Dispatch): void {
    this.client.take(d.platform);
    this.setDeadline(d.deadline);
  }

  private setDeadline(deadline: string): void {
    clearTimeout(this.timer);
    const left = Date.parse(deadline) - Date.now();
    if (left <= 0) return this.interrupt("deadline");
    this.timer = setTimeout(() => this.setDeadline(deadline), Math.min(left, maxTimer));
  }

  release(): void {
    clearTimeout(this.timer);
    clearTimeout(this.reporting);
  }

  progress(phase: string, percent: number, message: string): void {
    this.keeper.update(this, this.op.status.phase !== phase, (s) => {
      s.phase = clip(phase, 100);
      s.message = clip(message, maxMessage);
      s.percent = Math.max(s.percent, Math.min(percent, 100));
    });
    this.reportSoon();
  }

  member(id: string, status: MemberStatus, health: Health, detail?: object): void {
    if (detail !== undefined && Buffer.byteLength(JSON.stringify(detail)) > maxDetail) throw new Error(`detail of member ${id} is too long`);
    this.keeper.update(this, true, (s) => {
      const update = { id, status, health, ...(detail === undefined ? {} : { detail }) };
      s.members = [...s.members.filter((m) => m.id !== id), update];
    });
    this.reportSoon();
  }

  evidence(key: string, value: unknown): void {
    this.keeper.update(this, true, (s) => {
      const evidence = { ...s.evidence, [key]: value };
      if (Buffer.byteLength(JSON.stringify(evidence)) > maxEvidence) throw new Error(`evidence ${key}: more than ${maxEvidence} bytes in all`);
      s.evidence = evidence;
    });
  }

  waitsFor(work: Work[]): void {
    const shown = work.slice(0, maxWork);
    if (JSON.stringify(this.op.status.waitsFor ?? []) === JSON.stringify(shown)) return;
    this.keeper.update(this, false, (s) => { s.waitsFor = shown; });
  }

  /** commit marks the point after which stopping would do harm; it fails when a cancel came first. */
  commit(): void {
    this.signal.throwIfAborted();
    if (this.op.canceled) throw new Interrupted("canceled");
    this.keeper.commit(this);
  }

  /** do runs a node task and requires that it succeeds. The same step is the same task, also after a kill. */
  async do(member: Member, step: string, task: Task, signal: AbortSignal = this.signal): Promise<TaskResult> {
    const result = await this.try(member, step, task, signal);
    if (result.state !== "SUCCEEDED") throw taskFailure(step, member.id, result);
    return result;
  }

  /** try is do, but a task that did not succeed is a result. What a step sends is on disk before it is sent. */
  async try(member: Member, step: string, task: Task, signal: AbortSignal = this.signal): Promise<TaskResult> {
    const key = this.key(member, step);
    const kept = this.op.steps.get(key) as Task | undefined;
    this.reach(member, step);
    if (kept === undefined) await this.keeper.keepStep(this, key, task);
    return this.send(member, step, key, kept ?? task, signal);
  }

  /** look is try for a task that only looks: every call is a new task and nothing is journalled. */
  async look(member: Member, step: string, task: Task, signal: AbortSignal = this.signal): Promise<TaskResult> {
    this.reach(member, step);
    return this.send(member, step, `${this.key(member, step)}.${randomBytes(6).toString("hex")}`, task, signal);
  }

  private key(member: Member, step: string): string { return `${this.op.id}.${this.generation}.${member.id}.${step}`; }

  /** Under force nothing is asked of a node that is known to be away. */
  private reach(member: Member, step: string): void { if (this.force && !reachable(member)) throw away(member, step); }

  private async send(member: Member, step: string, key: string, task: Task, signal: AbortSignal): Promise<TaskResult> {
    const limit = this.force ? AbortSignal.timeout(1000 * ((task.timeoutSeconds ?? 60) + forcedMargin)) : undefined;
    const bounded = limit === undefined ? signal : AbortSignal.any([signal, limit]);
    try {
      return await this.client.run(member.id, key, task, bounded, () => this.why === "stopping");
    } catch (error) {
      if (limit?.aborted === true && !signal.aborted) throw away(member, step);
      throw asFailure(step, error);
    }
  }

  /** each works on several members at once and throws the first error after all have ended. */
  async each(members: Member[], work: (member: Member) => Promise<void>): Promise<void> {
    const left = [...members];
    const errors: unknown[] = [];
    const worker = async (): Promise<void> => {
      for (let member = left.shift(); member !== undefined && errors.length === 0; member = left.shift()) {
        await work(member).catch((error: unknown) => errors.push(error));
      }
    };
    await Promise.all(Array.from({ length: parallelMembers }, worker));
    if (errors.length > 0) throw errors[0];
  }

  /** cleanup undoes things after the run was interrupted, for two minutes. When the controller stops, or the operation
   * begins anew with force, the work goes on and nothing may be undone. */
  async cleanup(undo: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.why === "stopping" || this.why === "forced") return;
    await undo(AbortSignal.timeout(cleanupTime)).catch((error: unknown) => {
      console.error(JSON.stringify({ level: "warn", operation: this.op.id, message: "not everything was undone", error: String(error) }));
    });
  }

  /** teardown deletes the sandboxes of members and reports each as removed once its node says that nothing is left.
   * Under force a node that cannot be reached is passed over; the evidence says so. */
  async teardown(members: Member[]): Promise<void> {
    const left: Record<string, number> = {};
    const passed: string[] = [];
    await this.each(members, async (member) => {
      try {
        left[member.id] = residueOf(await this.do(member, "teardown", { kind: "TEARDOWN", spec: {}, timeoutSeconds: this.force ? 30 : 300 }));
        if (left[member.id] !== 0) throw new Failure("RESIDUE_LEFT", "node", true, `member ${member.id} left something on its node`);
        this.member(member.id, "removed", "unknown");
      } catch (error) {
        if (!this.force || !isAway(error)) throw error;
        passed.push(member.id);
        this.member(member.id, "removed", "unknown", { tornDown: false });
      }
    });
    if (passed.length > 0) this.evidence("notTornDown", passed.sort());
    this.evidence("residue", left);
  }

  /** Changes are pushed at most every half second; a push that fails is not repeated, the platform reads the feed. */
  private reportSoon(): void {
    this.reporting ??= setTimeout(() => {
      this.reporting = undefined;
      if (!this.signal.aborted) this.client.report(this.op.status, AbortSignal.timeout(5000)).catch(() => undefined);
    }, reportPause);
  }
}

function residueOf(result: TaskResult): number {
  const found = result.result?.["residue"] as { processes?: unknown[]; mounts?: unknown[]; files?: number } | undefined;
  return (found?.processes?.length ?? 0) + (found?.mounts?.length ?? 0) + (found?.files ?? 0);
}

function away(member: Member, step: string): Failure {
  return new Failure("NODE_UNREACHABLE", "node", true, `step ${step} on member ${member.id}: node ${member.node.name} cannot be reached`);
}

export function isAway(error: unknown): boolean { return error instanceof Failure && error.code === "NODE_UNREACHABLE"; }
