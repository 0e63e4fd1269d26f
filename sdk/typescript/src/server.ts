// The routes of the contract. Nothing is answered without a valid request token, and its signature is verified before
// the body is read, so that strangers cannot make the adapter hold bodies.
import * as http from "node:http";
import type { App, Call } from "./app.js";
import { canonical, digest } from "./canonical.js";
import {
  clip, contractVersions, Failure, malformed, maxBody, maxMessage, maxUsageRecords, maxWaitSeconds, maxWork, refuse, Refusal, type Instance,
  type Member, type Platform, type PlanAnswer,
} from "./contract.js";
import type { Engine } from "./engine.js";
import { ApiError, PlatformClient } from "./platform.js";
import { fault } from "./schema.js";
import { readAction, readAsked, readAttempt, readDispatch } from "./validate.js";
import type { Verifier } from "./verify.js";

const maxToken = 8 << 10;
const maxCursor = 200;
const maxActionKeys = 4096;
const callTime = 120_000; // an action, an observation or a usage query
const planTime = 30_000;

interface Request { method: string; url: URL; id: string; name: string; headers: http.IncomingHttpHeaders; body: Buffer; signal: AbortSignal }
interface Answer { status: number; body: unknown }
type Route = (r: Request) => Promise<Answer> | Answer;

export class Server {
  private readonly actionKeys = new Map<string, string>();
  private readonly stopped = new AbortController();
  private readonly routes: [string, RegExp, Route][] = [
    ["GET", /^\/v1\/adapter$/, () => this.describe()],
    ["GET", /^\/v1\/operations$/, (r) => this.changes(r)],
    ["PUT", /^\/v1\/operations\/(?<id>[^/]+)$/, (r) => this.dispatch(r)],
    ["GET", /^\/v1\/operations\/(?<id>[^/]+)$/, (r) => this.status(r)],
    ["POST", /^\/v1\/operations\/(?<id>[^/]+)\/cancel$/, (r) => this.cancel(r)],
    ["POST", /^\/v1\/plans$/, (r) => this.plan(r)],
    ["GET", /^\/v1\/instances\/(?<id>[^/]+)$/, (r) => this.observe(r)],
    ["POST", /^\/v1\/instances\/(?<id>[^/]+)\/actions\/(?<name>[^/]+)$/, (r) => this.action(r)],
    ["GET", /^\/v1\/instances\/(?<id>[^/]+)\/usage$/, (r) => this.usage(r)],
  ];
  readonly http: http.Server;

  constructor(private readonly engine: Engine, private readonly app: App, private readonly verifier: Verifier,
    private readonly about: { name: string; build: string; graphqlUrl: string }) {
    this.http = http.createServer({ requestTimeout: 30_000, headersTimeout: 30_000, maxHeaderSize: 64 << 10 }, (req, res) => void this.serve(req, res));
    this.http.maxConnections = 256;
  }

  /** stop ends the long polls and lets open requests come to their ends. */
  stop(): Promise<void> {
    this.stopped.abort();
    return new Promise((resolve) => {
      this.http.close(() => resolve());
      this.http.closeIdleConnections();
      setTimeout(() => this.http.closeAllConnections(), 5000).unref();
    });
  }

  private async serve(req: http.IncomingMessage, res: http.ServerResponse): Promise<void> {
    const gone = new AbortController();
    res.on("close", () => gone.abort());
    let answer: Answer;
    try {
      answer = await this.handle(req, AbortSignal.any([gone.signal, this.stopped.signal]));
    } catch (error) {
      answer = refused(error);
    }
    const correlation = req.headers["x-correlation-id"];
    if (typeof correlation === "string" && /^[A-Za-z0-9._-]{1,64}$/.test(correlation)) res.setHeader("X-Correlation-ID", correlation);
    let raw = JSON.stringify(answer.body);
    if (Buffer.byteLength(raw) > maxBody) {
      answer.status = 500;
      raw = JSON.stringify({ code: "INTERNAL", message: "the answer could not be written" });
    }
    if (answer.status === 413) res.setHeader("Connection", "close");
    res.writeHead(answer.status, { "Content-Type": "application/json", "Cache-Control": "no-store" }).end(raw);
    req.resume(); // what was not read of a refused request
  }

  private async handle(req: http.IncomingMessage, signal: AbortSignal): Promise<Answer> {
    const target = req.url ?? "/";
    const claims = await this.verifier.open(req.headers.authorization);
    const body = await read(req);
    this.verifier.check(claims, req.method ?? "", target, body);
    if (this.engine.isStopping) throw new Refusal(503, { code: "UNAVAILABLE", message: "the adapter is stopping", retryable: true });
    const url = new URL(target, "http://adapter");
    for (const [method, pattern, route] of this.routes) {
      const found = req.method === method ? pattern.exec(url.pathname) : null;
      if (found === null) continue;
      const id = decode(found.groups?.["id"] ?? "");
      return await route({ method, url, id, name: decode(found.groups?.["name"] ?? ""), headers: req.headers, body, signal });
    }
    throw missing("route");
  }

  private describe(): Answer {
    return { status: 200, body: { contractVersions, name: this.about.name, build: this.about.build, apps: [this.app.info] } };
  }

  private async changes(r: Request): Promise<Answer> {
    const wait = r.url.searchParams.get("wait") ?? "0";
    if (!/^[0-9]{1,2}$/.test(wait) || Number(wait) > maxWaitSeconds) throw malformed("wait", `must be 0 to ${maxWaitSeconds} seconds`);
    return { status: 200, body: await this.engine.feed.wait(r.url.searchParams.get("after") ?? "", Number(wait), r.signal) };
  }

  private dispatch(r: Request): Answer {
    const { status, done } = this.engine.take(readDispatch(json(r), r.id));
    return { status: done ? 200 : 202, body: status };
  }

  private status(r: Request): Answer {
    const status = this.engine.feed.get(r.id);
    if (status === undefined) throw missing("operation");
    return { status: 200, body: status };
  }

  private async cancel(r: Request): Promise<Answer> {
    return { status: 200, body: await this.engine.cancel(r.id, readAttempt(json(r))) };
  }

  /** What a dispatch would be refused for is no error of a plan: it is the reason of its verdict. */
  private async plan(r: Request): Promise<Answer> {
    const asked = readAsked(json(r));
    if (asked.instance.app !== this.app.info.slug) throw new Refusal(404, { code: "PLANS_UNSUPPORTED", message: "this adapter does not run the app" });
    try {
      this.engine.admit(asked);
      const key = `plan.${digest(String(Date.now()), String(Math.random()))}`;
      return { status: 200, body: bounded(await this.app.plan(this.call(r, asked.instance, asked.members, asked.platform, key, planTime), asked)) };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { code, message, path } = error.body;
      const reasons = [path === undefined ? { code, message } : { code, message, path }];
      return { status: 200, body: { verdict: "unsafe", reversible: false, reasons, workLost: [], workTotal: 0, message } };
    }
  }

  private async observe(r: Request): Promise<Answer> {
    const seen = await this.app.observe(this.known(r));
    return { status: 200, body: { instanceId: r.id, ...seen, observedAt: new Date().toISOString() } };
  }

  private async usage(r: Request): Promise<Answer> {
    const after = r.url.searchParams.get("after") ?? "";
    if (after.length > maxCursor) throw malformed("after", `must be at most ${maxCursor} bytes`);
    if (this.engine.instances.get(r.id) === undefined) {
      const past = this.app.pastUsage(r.id, after);
      if (past === undefined) throw missing("instance");
      return { status: 200, body: past };
    }
    const page = await this.app.usage(this.known(r), after);
    if (page.records.length > maxUsageRecords) throw new Error("more usage records than a page may hold");
    return { status: 200, body: page };
  }

  private async action(r: Request): Promise<Answer> {
    const request = readAction(json(r), r.id);
    const action = request.instance.app === this.app.info.slug ? this.app.actions.find((a) => a.name === r.name) : undefined;
    if (action === undefined) throw missing("action");
    const key = digest(request.instance.id, action.name, request.idempotencyKey);
    const call = this.call(r, request.instance, request.members, request.platform, `act.${key}`, callTime);
    const wrong = fault(action.inputSchema, request.input, "input");
    if (wrong !== undefined) throw refuse("INVALID_ARGUMENT", wrong.path, `${wrong.path} ${wrong.message}`);
    this.once(key, request.input);
    const output = await action.do(call, request);
    return { status: 200, body: { output } };
  }

  /** once refuses a key that was used with another input; the platform refuses it as well, after a restart. */
  private once(key: string, input: unknown): void {
    const hash = digest(canonical(input));
    const held = this.actionKeys.get(key);
    if (held !== undefined && held !== hash) throw reused();
    if (this.actionKeys.size >= maxActionKeys) this.actionKeys.delete(this.actionKeys.keys().next().value ?? "");
    this.actionKeys.set(key, hash);
  }

  /** known makes a call about an instance that is remembered, with the access of this request. */
  private known(r: Request): Call {
    const token = r.headers["x-platform-token"];
    if (typeof token !== "string" || token === "" || token.length > maxToken) throw malformed("X-Platform-Token", "is missing or too long");
    const known = this.engine.instances.get(r.id);
    if (known === undefined) throw missing("instance");
    const access = { graphqlUrl: this.about.graphqlUrl, token, tokenExpiresAt: "" };
    // Every observation looks anew, so its tasks must be new ones.
    return this.call(r, known.instance, known.members, access, `obs.${digest(String(Date.now()), String(Math.random()))}`, callTime);
  }

  private call(r: Request, instance: Instance, members: Member[], access: Platform, key: string, time: number): Call {
    const correlation = r.headers["x-correlation-id"];
    const client = new PlatformClient(access, typeof correlation === "string" ? correlation : "", false);
    const signal = AbortSignal.any([r.signal, AbortSignal.timeout(time)]);
    return {
      instance, members, signal,
      ask: (member, step, task, within) => client.run(member.id, `${key}.${step}`, task, within === undefined ? signal : AbortSignal.any([signal, within]), () => false),
    };
  }
}

async function read(req: http.IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of req.iterator({ destroyOnReturn: false })) {
    size += (part as Buffer).length;
    if (size > maxBody) throw new Refusal(413, { code: "DOCUMENT_TOO_LARGE", message: "the body is larger than 1 MiB" });
    parts.push(part as Buffer);
  }
  return Buffer.concat(parts);
}

function json(r: Request): unknown {
  if ((r.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase() !== "application/json") throw malformed("Content-Type", "must be application/json");
  try {
    return JSON.parse(r.body.toString()) as unknown;
  } catch {
    throw new Refusal(400, { code: "INVALID_ARGUMENT", message: "the body is not JSON" });
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw missing("route");
  }
}

function missing(what: string): Refusal { return new Refusal(404, { code: "NOT_FOUND", message: `no such ${what}` }); }

function reused(): Refusal {
  return new Refusal(409, { code: "IDEMPOTENCY_KEY_REUSED", message: "the idempotency key was used with another input", path: "idempotencyKey" });
}

/** bounded brings a plan within the bounds of the contract. */
function bounded(plan: PlanAnswer): PlanAnswer {
  return { ...plan, workTotal: Math.max(plan.workTotal, plan.workLost.length), workLost: plan.workLost.slice(0, maxWork), reasons: plan.reasons.slice(0, 50) };
}

/** refused turns an error into an answer. What it says beyond the contract is only logged. */
function refused(error: unknown): Answer {
  if (error instanceof Refusal) {
    if (error.status === 401) console.error(JSON.stringify({ level: "warn", message: "request refused", reason: String(error.cause) }));
    return { status: error.status, body: error.body };
  }
  if (error instanceof ApiError && error.code === "IDEMPOTENCY_KEY_REUSED") return refused(reused());
  if (error instanceof ApiError) return { status: 422, body: { code: "PLATFORM_REFUSED", message: clip(`${error.code}: ${error.message}`, maxMessage), retryable: error.retryable } };
  if (error instanceof Failure) return { status: 422, body: { code: error.code, message: clip(error.message, maxMessage), retryable: error.retryable } };
  if (error instanceof DOMException && error.name === "TimeoutError") return { status: 503, body: { code: "UNAVAILABLE", message: "it did not end in time", retryable: true } };
  console.error(JSON.stringify({ level: "error", message: "request failed", error: String(error) }));
  return { status: 500, body: { code: "INTERNAL", message: "the adapter met an internal error", retryable: true } };
}
