// The routes of the contract, behind a verified signature and independent of HTTP.
import { randomBytes } from "node:crypto";
import { Call, PlanCall, type App, type Planned } from "./app.js";
import { canonical, digest } from "./canonical.js";
import {
  boundWork, clip, contractVersions, Failure, healths, malformed, maxKey, maxMessage, maxReasons, maxToken,
  maxUsageRecords, maxWaitSeconds, missing, refuse, Refusal, takesAway, verdicts, type Asked, type PlanAnswer,
  type Platform,
} from "./contract.js";
import type { Engine } from "./engine.js";
import { hide, type Log } from "./log.js";
import { ApiError, PlatformClient } from "./platform.js";
import { TimedOut, using, within } from "./scope.js";
import { idPattern, readAction, readAttempt, readDispatch, readPlan } from "./validate.js";

/** Bounds on an action, an observation or a usage query, and on a plan, in seconds. */
const callSeconds = 120;
const planSeconds = 30;
const maxActionKeys = 4096;

/** Request is a verified request with its body; signal ends when the caller has disconnected. */
export interface Request {
  method: string; url: URL; header(name: string): string; body: Buffer; log: Log; signal: AbortSignal;
}
export interface Answer { status: number; body: unknown }
type Route = (r: Request, id: string, name: string) => Promise<Answer> | Answer;

export interface About { name: string; build: string; graphqlUrl: string }

/** Routes answers the nine requests of the contract. */
export class Routes {
  private readonly apps: Map<string, App>;
  private readonly used = new Map<string, string>();
  private readonly table: [string, RegExp, Route][] = [
    ["GET", /^\/v1\/adapter$/, () => this.describe()],
    ["GET", /^\/v1\/operations$/, (r) => this.changes(r)],
    ["PUT", /^\/v1\/operations\/([^/]+)$/, (r, id) => this.dispatch(r, id)],
    ["GET", /^\/v1\/operations\/([^/]+)$/, (_, id) => this.status(id)],
    ["POST", /^\/v1\/operations\/([^/]+)\/cancel$/, (r, id) => this.cancel(r, id)],
    ["POST", /^\/v1\/plans$/, (r) => this.plan(r)],
    ["GET", /^\/v1\/instances\/([^/]+)$/, (r, id) => this.observe(r, id)],
    ["POST", /^\/v1\/instances\/([^/]+)\/actions\/([^/]+)$/, (r, id, name) => this.act(r, id, name)],
    ["GET", /^\/v1\/instances\/([^/]+)\/usage$/, (r, id) => this.usage(r, id)],
  ];

  constructor(private readonly engine: Engine, apps: readonly App[], private readonly about: About) {
    this.apps = new Map(apps.map((app) => [app.slug, app]));
  }

  /** answer finds the route of a request. */
  async answer(r: Request): Promise<Answer> {
    if (this.engine.stopped.aborted) {
      throw new Refusal(503, { code: "UNAVAILABLE", message: "the adapter is stopping", retryable: true });
    }
    for (const [method, pattern, route] of this.table) {
      const found = r.method === method ? pattern.exec(r.url.pathname) : null;
      if (found !== null) return await route(r, decode(found[1] ?? ""), decode(found[2] ?? ""));
    }
    throw missing("route");
  }

  private describe(): Answer {
    const { name, build } = this.about;
    return { status: 200, body: { contractVersions, name, build, apps: [...this.apps.values()].map((app) => app.info) } };
  }

  private async changes(r: Request): Promise<Answer> {
    const wait = r.url.searchParams.get("wait") ?? "0";
    if (!/^[0-9]{1,2}$/.test(wait) || Number(wait) > maxWaitSeconds) {
      throw malformed("wait", `must be 0 to ${maxWaitSeconds} seconds`);
    }
    const signal = AbortSignal.any([r.signal, this.engine.stopped]);
    return { status: 200, body: await this.engine.feed.wait(r.url.searchParams.get("after") ?? "", Number(wait), signal) };
  }

  private dispatch(r: Request, id: string): Answer {
    const read = readDispatch(json(r), id);
    const d = { ...read, traceparent: read.traceparent || r.header("traceparent") };
    hide(d.platform.token);
    if (!this.engine.knows(id)) this.admit(d);
    const { status, done } = this.engine.take(d);
    return { status: done ? 200 : 202, body: status };
  }

  /** admit decides whether an operation may begin. */
  private admit(asked: Asked): void {
    const app = this.apps.get(asked.instance.app);
    if (app === undefined) throw refuse("UNSUPPORTED_OPERATION", "instance.app", "this adapter does not run the app");
    if (app.functions.operations[asked.kind] === undefined) {
      throw refuse("UNSUPPORTED_OPERATION", "kind", "this adapter does not support the operation kind");
    }
    if (!takesAway.has(asked.kind)) app.checkConfig(asked.instance.config);
    app.functions.check?.(asked);
  }

  private status(id: string): Answer {
    const status = this.engine.feed.get(id);
    if (status === undefined) throw missing("operation");
    return { status: 200, body: status };
  }

  private async cancel(r: Request, id: string): Promise<Answer> {
    const attempt = readAttempt(json(r));
    if (!idPattern.test(id)) throw missing("operation");
    return { status: 200, body: await this.engine.cancel(id, attempt) };
  }

  /** A refusal of the dispatch is the reason of an unsafe verdict. */
  private async plan(r: Request): Promise<Answer> {
    const asked = readPlan(json(r));
    const app = this.apps.get(asked.instance.app);
    const { plan, leaving } = app?.functions ?? {};
    if (asked.choose === undefined ? plan === undefined : leaving === undefined) {
      throw new Refusal(404, { code: "PLANS_UNSUPPORTED", message: "this adapter does not plan operations of the app" });
    }
    const log = r.log.bind({ instance: asked.instance.id, plan: asked.kind });
    const client = this.client(r, asked.platform);
    const call = new PlanCall(asked.instance, asked.members, client, log, freshKey("plan"), asked);
    try {
      this.admit(asked);
      if (asked.choose === undefined) {
        return { status: 200, body: bounded(await limited(r, planSeconds, async () => plan?.(call))) };
      }
      const { count } = asked.choose;
      const chosen = (await limited(r, planSeconds, async () => leaving?.(call, count))) ?? [];
      return { status: 200, body: { ...bounded({ verdict: "safe" }), chosen: chosen.map((m) => m.id) } };
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 422) throw error;
      const { code, message, path } = error.body;
      const reasons = [path === undefined ? { code, message } : { code, message, path }];
      return { status: 200, body: bounded({ verdict: "unsafe", reasons, message }) };
    }
  }

  private async act(r: Request, id: string, name: string): Promise<Answer> {
    const request = readAction(json(r), id);
    const app = this.apps.get(request.instance.app);
    const work = app?.functions.actions?.[name];
    if (app === undefined || work === undefined || !Object.hasOwn(app.functions.actions ?? {}, name)) throw missing("action");
    app.checkInput(name, request.input);
    const key = digest(id, name, request.idempotencyKey);
    this.use(key, digest(canonical(request.input)));
    const log = r.log.bind({ instance: id, action: name });
    const client = this.client(r, request.platform);
    const call = new Call(request.instance, request.members, client, log, `act.${key}`, request);
    const output = await limited(r, callSeconds, () => work(call));
    app.checkOutput(name, output);
    return { status: 200, body: { output } };
  }

  /** use refuses a key that was used with another input. After a restart, the platform's own task keys refuse it. */
  private use(key: string, hash: string): void {
    const held = this.used.get(key);
    if (held !== undefined && held !== hash) throw reused();
    this.used.set(key, hash);
    if (this.used.size > maxActionKeys) this.used.delete(this.used.keys().next().value ?? "");
  }

  /** known returns a call about a known instance, with the access of this request. */
  private known(r: Request, id: string, gone: boolean): { call: Call; app: App } {
    const token = r.header("x-platform-token");
    if (token === "" || token.length > maxToken) throw malformed("X-Platform-Token", "is missing or too long");
    const one = this.engine.instances.get(id, gone);
    const app = one && this.apps.get(one.instance.app);
    if (one === undefined || app === undefined) throw missing("instance");
    const client = this.client(r, { graphqlUrl: this.about.graphqlUrl, token, tokenExpiresAt: "" });
    return { call: new Call(one.instance, one.members, client, r.log.bind({ instance: id }), freshKey("obs")), app };
  }

  private client(r: Request, access: Platform): PlatformClient {
    return new PlatformClient(access, r.header("x-correlation-id"), r.log, false, r.header("traceparent"));
  }

  private async observe(r: Request, id: string): Promise<Answer> {
    const { call, app } = this.known(r, id, false);
    const look = app.functions.observe;
    const none = { health: "unknown" as const, message: "this adapter does not observe", members: [] };
    const seen = look === undefined ? none : await limited(r, callSeconds, () => look(call));
    if ([seen, ...seen.members].some((one) => !healths.has(one.health))) {
      throw new Error("observe: a health is not in the contract");
    }
    return { status: 200, body: { observedAt: new Date().toISOString(), ...seen, instanceId: id } };
  }

  /** Usage of a decommissioned instance is returned too: its last records are read after its end. */
  private async usage(r: Request, id: string): Promise<Answer> {
    const { call, app } = this.known(r, id, true);
    const after = r.url.searchParams.get("after") ?? "";
    if (Buffer.byteLength(after) > maxKey) throw malformed("after", `must be at most ${maxKey} bytes`);
    const read = app.functions.usage;
    const page = read === undefined ? { cursor: after, records: [] } : await limited(r, callSeconds, () => read(call, after));
    if (page.records.length > maxUsageRecords) throw new Error("usage: more records than a page may have");
    return { status: 200, body: page };
  }
}

/** limited bounds an app's function by its time and by its caller, and turns its errors into answers. */
async function limited<T>(r: Request, seconds: number, work: () => Promise<T>): Promise<T> {
  try {
    return await using(r.signal, () => within(seconds, work));
  } catch (error) {
    throw callRefusal(error);
  }
}

/** callRefusal returns what the caller of an action, an observation, a plan or a usage query reads of an error. */
function callRefusal(error: unknown): unknown {
  if (error instanceof ApiError) {
    if (error.code === "IDEMPOTENCY_KEY_REUSED") return reused();
    const message = clip(error.message, maxMessage);
    return new Refusal(422, { code: "PLATFORM_REFUSED", message, retryable: error.retryable });
  }
  if (error instanceof Failure) {
    const { code, message, retryable } = error.body();
    return new Refusal(422, { code, message, retryable });
  }
  if (error instanceof TimedOut) {
    return new Refusal(503, { code: "UNAVAILABLE", message: "it did not end in time", retryable: true });
  }
  return error;
}

function reused(): Refusal {
  const message = "the idempotency key was used with another input";
  return new Refusal(409, { code: "IDEMPOTENCY_KEY_REUSED", message, path: "idempotencyKey" });
}

function freshKey(kind: string): string { return `${kind}.${randomBytes(12).toString("hex")}`; }

/** bounded fills in what a plan omits, and cuts it to the bounds of the contract. */
function bounded(plan: Planned | undefined): PlanAnswer {
  const { verdict, reversible = false, workLost = [], workTotal = 0, message = "" } = plan ?? { verdict: "unknown" };
  const reasons = (plan?.reasons ?? []).slice(0, maxReasons);
  if (!verdicts.has(verdict)) throw new Error(`plan: verdict ${verdict} is not in the contract`);
  if (verdict !== "safe" && reasons.length === 0) throw new Error(`plan: verdict ${verdict} has no reason`);
  return {
    verdict, reversible, reasons, workLost: boundWork(workLost), workTotal: Math.max(workTotal, workLost.length),
    message: clip(message, maxMessage),
  };
}

function json(r: Request): unknown {
  if (r.header("content-type").split(";")[0]?.trim().toLowerCase() !== "application/json") {
    throw malformed("Content-Type", "must be application/json");
  }
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(r.body)) as unknown;
  } catch {
    throw malformed("body", "is not JSON");
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw missing("route");
  }
}
