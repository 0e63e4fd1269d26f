// What the author of an adapter writes: an App, its functions, and what they work with.
import {
  kinds, of, reachable, refuse, targetsOf, type Action, type ActionRequest, type AppInfo, type Asked, type Component,
  type Health, type Instance, type Kind, type Member, type MemberObservation, type Observation, type PlanAnswer,
  type PlanReason, type PlanRequest, type Settings, type UsageDimension, type UsagePage, type Work,
} from "./contract.js";
import type { Perform } from "./engine.js";
import type { Log } from "./log.js";
import type { PlatformClient } from "./platform.js";
import { askFor } from "./run.js";
import { compile, type Check } from "./schema.js";
import { every, signal } from "./scope.js";
import { timed, type Task, type TaskResult } from "./tasks.js";

/** Call is what an action, an observation, a plan or a usage query has to work with. The tasks of an action carry keys
 * of the action, so that a repeat is the same tasks; every other call runs new tasks. */
export class Call {
  constructor(readonly instance: Instance, readonly members: Member[], readonly client: PlatformClient,
    readonly log: Log, private readonly key: string, readonly request?: ActionRequest) {}

  /** signal ends when the call's time has expired, or the caller has disconnected. */
  get signal(): AbortSignal { return signal(); }

  /** input is the input of an action, valid by its schema. */
  input<T = Settings>(): T { return (this.request?.input ?? {}) as T; }

  /** of returns the members of one component, in the order of their indexes. */
  of(component: string): Member[] { return of(this.members, component); }

  /** do runs a node task and requires that it succeeds. */
  async do(member: Member, step: string, task: Task): Promise<TaskResult> {
    return (await this.attempt(member, step, task)).require(step, member);
  }

  /** attempt is do, but returns a task that did not succeed. */
  attempt(member: Member, step: string, task: Task): Promise<TaskResult> {
    return this.client.run(member.id, `${this.key}.${step}`, task);
  }

  /** ask runs a task that only reads, for at most so many seconds; undefined when the node did not answer or the task
   * did not succeed. It runs no task on a node that is known to be unreachable. */
  ask(member: Member, step: string, task: Task, seconds = 5): Promise<TaskResult | undefined> {
    return askFor(member, seconds, () => this.attempt(member, step, timed(task, seconds)));
  }

  /** each works on several members at once; see Run.each. */
  each(members: readonly Member[], work: (member: Member) => Promise<void>): Promise<void> { return every(members, work); }
}

/** PlanCall is a Call with the planned operation. */
export class PlanCall extends Call {
  constructor(instance: Instance, members: Member[], client: PlatformClient, log: Log, key: string,
    readonly asked: PlanRequest) {
    super(instance, members, client, log, key);
  }

  /** targets are the members that the operation would act on; force states that nothing is waited for. */
  get targets(): Member[] { return targetsOf(this.asked); }
  get force(): boolean { return this.asked.force === true; }
}

/** Seen is what an observe function returns. */
export type Seen = Pick<Observation, "health" | "message" | "members">;
/** Planned is what a plan function returns; what it leaves out is empty. */
export type Planned = Partial<PlanAnswer> & Pick<PlanAnswer, "verdict">;

/** Functions are the app's own functions, by what they answer. An app without a plan function plans nothing. */
export interface Functions {
  /** operations carry out kinds of operation. */
  operations: Partial<Record<Kind, Perform>>;
  /** actions answer the actions of the manifest: each has one. */
  actions?: Record<string, (call: Call) => Promise<object>>;
  /** check refuses an unsafe operation before anything is done. It calls no node. */
  check?: (asked: Asked) => void;
  /** observe reports the state of an instance now. */
  observe?: (call: Call) => Promise<Seen>;
  /** plan returns what an operation would do. */
  plan?: (call: PlanCall) => Promise<Planned>;
  /** leaving chooses the members that leave when a component gets fewer. */
  leaving?: (call: PlanCall, count: number) => Promise<Member[]>;
  /** usage returns the usage records of an instance after a cursor; also of a decommissioned instance. */
  usage?: (call: Call, after: string) => Promise<UsagePage>;
}

/** Manifest is what the kit reads of an app's manifest. */
export interface Manifest {
  app: string; version?: string; components: Component[]; configSchema?: object | null; actions?: Action[];
  usageDimensions?: UsageDimension[];
}

/** App is one app of an adapter: its description, which is the manifest's own, and its functions. */
export class App {
  readonly slug: string;
  readonly version: string;
  readonly components: Component[];
  private readonly config: Check;
  private readonly inputs = new Map<string, Check>();
  private readonly outputs = new Map<string, Check>();

  constructor(private readonly manifest: Manifest, readonly functions: Functions) {
    this.slug = manifest.app;
    this.version = manifest.version ?? "";
    this.components = manifest.components;
    this.config = compile(manifest.configSchema);
    for (const kind of Object.keys(functions.operations)) {
      if (!(kinds as readonly string[]).includes(kind)) throw new Error(`${kind} is not an operation kind`);
    }
    for (const { name, inputSchema, outputSchema } of this.actions) {
      if (functions.actions?.[name] === undefined) throw new Error(`the manifest's action ${name} has no function`);
      this.inputs.set(name, compile(inputSchema));
      this.outputs.set(name, compile(outputSchema));
    }
    for (const name of Object.keys(functions.actions ?? {})) {
      if (!this.inputs.has(name)) throw new Error(`the manifest has no action ${name}`);
    }
  }

  /** fromManifest begins an app from its manifest, so that the adapter describes itself with the content that it is
   * published with. */
  static fromManifest(document: string, functions: Functions): App {
    return new App(JSON.parse(document) as Manifest, functions);
  }

  private get actions(): Action[] { return this.manifest.actions ?? []; }

  /** info returns the app as the adapter describes it. */
  get info(): AppInfo {
    const { operations, leaving } = this.functions;
    return {
      slug: this.slug, components: this.components, operations: (Object.keys(operations) as Kind[]).sort(),
      configSchema: this.manifest.configSchema ?? null, actions: this.actions,
      usageDimensions: this.manifest.usageDimensions ?? [], ...(leaving === undefined ? {} : { choosesLeaving: true }),
    };
  }

  /** checkConfig refuses a config that breaks the schema. */
  checkConfig(config: unknown): void { hold(this.config, config ?? {}, "instance.config", "CONFIG_INVALID"); }

  /** checkInput refuses an input that breaks the action's schema. */
  checkInput(action: string, value: unknown): void { hold(this.inputs.get(action), value, "input", "INVALID_ARGUMENT"); }

  /** checkOutput throws for an output that breaks the action's schema: a fault of the adapter. */
  checkOutput(action: string, value: unknown): void {
    const wrong = this.outputs.get(action)?.(value, "output");
    if (wrong !== undefined) throw new Error(`action ${action} breaks its output schema: ${wrong.path}: ${wrong.message}`);
  }
}

function hold(check: Check | undefined, value: unknown, path: string, code: string): void {
  const wrong = check?.(value, path);
  if (wrong !== undefined) throw refuse(code, wrong.path, `${wrong.path}: ${wrong.message}`);
}

/** checkCounts refuses members of unknown components, and counts outside of the manifest's bounds. */
export function checkCounts(components: readonly Component[], asked: Asked): void {
  const known = new Map(components.map((c) => [c.key, c]));
  const unknown = (path: string, key: string): Error =>
    refuse("UNKNOWN_COMPONENT", path, `component ${JSON.stringify(key)} does not exist`);
  asked.members.forEach((m, n) => {
    if (!known.has(m.componentKey)) throw unknown(`members[${n}].componentKey`, m.componentKey);
  });
  if (asked.kind === "instance.decommission") return;
  asked.instance.components.forEach(({ key, count }, n) => {
    const at = `instance.components[${n}]`;
    const bounds = known.get(key);
    if (bounds === undefined) throw unknown(`${at}.key`, key);
    const { min, max } = bounds;
    if (count < min) throw refuse("BELOW_MINIMUM", `${at}.count`, `${count} would be left: the minimum is ${min}`);
    if (count > max) throw refuse("ABOVE_MAXIMUM", `${at}.count`, `${count} is more than the maximum of ${max}`);
  });
}

/** observeMembers reads all members at once and judges the instance by them: unknown while silent members may change
 * the verdict. what states what a healthy member does, such as "peers run". */
export async function observeMembers(call: Call, what: string,
  one: (member: Member) => Promise<[Health, string]>): Promise<Seen> {
  const seen = new Map<string, [Health, string]>();
  await call.each(call.members, async (member) => { seen.set(member.id, await one(member)); });
  const members = call.members.map((member): MemberObservation => {
    const [health, message] = seen.get(member.id) ?? ["unknown", ""];
    return { id: member.id, health, message };
  });
  const count = (health: Health): number => members.filter((m) => m.health === health).length;
  const [healthy, unknown] = [count("healthy"), count("unknown")];
  const rest = unknown > 0 ? `, ${unknown} unknown` : "";
  const bad = healthy > 0 ? "degraded" : unknown > 0 ? "unknown" : "unhealthy";
  const health = members.length > 0 && healthy === members.length ? "healthy" : bad;
  return { health, message: `${healthy} of ${members.length} ${what}${rest}`, members };
}

/** WorkPlan states what becomes of the work that runs. */
export interface WorkPlan { lost: boolean; reversible: boolean; what: string }

/** planOfWork returns a plan for the work that runs: lost work makes the operation unsafe; other work is waited for.
 * silent names the members that did not answer: unknown work is not safe. what names the work: "batches". */
export function planOfWork(work: readonly Work[], silent: readonly string[], o: WorkPlan): Planned {
  const some = `${work.length} ${o.what} ${o.lost ? "are lost" : "are waited for"}`;
  const message = work.length > 0 ? some : `no ${o.what} there`;
  const reasons: PlanReason[] = work.length > 0 ? [{ code: o.lost ? "WORK_LOST" : "WORK_AWAITED", message }] : [];
  for (const name of silent) {
    reasons.push({ code: "NODE_UNREACHABLE", message: `${name} does not answer`, path: "members" });
  }
  const verdict = work.length > 0 && o.lost ? "unsafe" : silent.length > 0 ? "unknown" : "safe";
  return { verdict, reversible: o.reversible, reasons, workLost: o.lost ? [...work] : [], message };
}

/** askWork reads the work of all members at once: what they do, and the names of members that did not answer. */
export async function askWork(members: readonly Member[], ask: (member: Member) => Promise<Work[] | undefined>):
  Promise<{ work: Work[]; silent: Member[] }> {
  const found = new Map<string, Work[] | undefined>();
  await every(members, async (member) => { found.set(member.id, reachable(member) ? await ask(member) : undefined); });
  return {
    work: members.flatMap((m) => found.get(m.id) ?? []), silent: members.filter((m) => found.get(m.id) === undefined),
  };
}
