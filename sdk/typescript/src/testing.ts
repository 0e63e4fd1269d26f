// A stand-in for the platform, for tests of an adapter that need no platform: it publishes a key set, signs requests,
// and answers the public API's calls for node tasks from a function of the test. It executes nothing; "appctl adapter
// check" does.
import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";
import * as http from "node:http";
import type { AddressInfo } from "node:net";
import type { App } from "./app.js";
import type { Dispatch, Kind, Member, Status } from "./contract.js";
import { Controller } from "./controller.js";
import { Log } from "./log.js";

/** Node returns how a task ends, by its member, kind and spec; undefined leaves it running; Node is called again. */
export type Node = (member: string, kind: string, spec: Record<string, unknown>) => object | undefined;

interface Task { id: string; input: Record<string, unknown>; state: string; begun: number }
/** Called is one call of the public API that was made. */
export interface Called { name: string; token: string; variables: Record<string, unknown> }
export interface Reply { code: number; body: unknown }

/** succeed is a node that does everything at once. */
export const succeed: Node = (_member, kind) => {
  let result: object = { exitCode: 0, stdout: "", stderr: "" };
  if (kind === "TEARDOWN") result = { residue: { processes: [], mounts: [], files: 0 } };
  else if (kind.endsWith("_PROCESS")) result = { process: { state: "running" } };
  return { state: "SUCCEEDED", message: "", result };
};

const keyPair = (): { publicKey: KeyObject; privateKey: KeyObject } => generateKeyPairSync("ed25519");

/** FakePlatform is the platform of one test; close it at the end. */
export class FakePlatform {
  readonly name = "under-test";
  key = keyPair();
  kid = "key-1";
  readonly sealing = generateKeyPairSync("x25519");
  readonly tasks = new Map<string, Task>();
  readonly calls: Called[] = [];
  /** traces are the W3C trace contexts of the calls of the public API, in order. */
  readonly traces: string[] = [];
  /** failures are statuses that the next calls of the public API answer with, first to last. */
  failures: number[] = [];
  tokenSeconds = 3600;
  url = "";
  private readonly server = http.createServer((req, res) => void this.serve(req, res));

  constructor(public node: Node = succeed) {}

  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return this;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  // -- the adapter's side

  /** adapter starts an adapter of this platform. */
  async adapter(apps: App[], stateDir: string, log = new Log("error")): Promise<FakeAdapter> {
    const controller = new Controller({
      name: this.name, build: "test", apps, stateDir, issuer: this.url, jwksUrl: `${this.url}/jwks`,
      graphqlUrl: `${this.url}/graphql`, log,
    });
    return new FakeAdapter(this, controller, `http://${await controller.start()}`);
  }

  /** token returns a request token; the given claims replace the right ones. */
  token(method: string, target: string, body: string, other: object = {}): string {
    const now = Math.floor(Date.now() / 1000);
    const bd = createHash("sha256").update(body).digest("base64url");
    const claims = {
      iss: this.url, aud: this.name, iat: now, exp: now + 60, jti: randomBytes(8).toString("hex"), htm: method,
      htu: target, bd, ...other,
    };
    const signed = [{ alg: "EdDSA", typ: "JWT", kid: this.kid }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
    return `${signed}.${sign(null, Buffer.from(signed), this.key.privateKey).toString("base64url")}`;
  }

  /** dispatch returns the body of a dispatch for an instance of the app's first component. */
  dispatch(operationId: string, kind: Kind, app: App, count = 2, other: Partial<Dispatch> = {}): Dispatch {
    const key = app.components[0]?.key ?? "";
    const at = (seconds: number): string => new Date(Date.now() + 1000 * seconds).toISOString();
    return {
      operationId, kind, attempt: 1, deadline: at(60), correlationId: "cor-1", targets: [], change: null,
      platform: {
        graphqlUrl: `${this.url}/graphql`, token: `token-${operationId}`, tokenExpiresAt: at(this.tokenSeconds),
      },
      instance: {
        id: "ins_1", name: "one", tenantId: "ten_1", projectId: "prj_1", app: app.slug, version: "1.0.0", config: {},
        components: [{ key, count }],
      },
      members: Array.from({ length: count }, (_, n) => this.member(key, n)), ...other,
    };
  }

  /** member returns one member of the instance. */
  member(componentKey: string, index: number): Member {
    const sealingKey = this.sealing.publicKey.export({ type: "spki", format: "der" }).subarray(-32).toString("base64");
    const node = {
      id: `nod_${index}`, name: `node-${index}`, address: "127.0.0.1", sealingKey, allocationId: "alc_1",
      shape: "baremetal", gpus: 0, cpus: 1, memoryMiB: 1024,
    };
    return { id: `mem_${index}`, componentKey, index, status: "active", node };
  }

  // -- the public API

  private async serve(req: http.IncomingMessage, res: http.ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of req) parts.push(part as Buffer);
    const answer = req.method === "GET" ? { code: 200, body: { keys: [this.jwk()] } } : this.graphql(req, Buffer.concat(parts));
    res.writeHead(answer.code, { "Content-Type": "application/json" }).end(JSON.stringify(answer.body));
  }

  private jwk(): object {
    return { ...this.key.publicKey.export({ format: "jwk" }), kid: this.kid, alg: "EdDSA", use: "sig" };
  }

  private graphql(req: http.IncomingMessage, raw: Buffer): Reply {
    const { query, variables } = JSON.parse(raw.toString()) as { query: string; variables: Record<string, unknown> };
    const name = /^\w+ (\w+)/.exec(query)?.[1] ?? "";
    const token = (req.headers.authorization ?? "").slice("Bearer ".length);
    this.calls.push({ name, token, variables });
    this.traces.push(String(req.headers["traceparent"] ?? ""));
    const failure = this.failures.shift();
    if (failure !== undefined) return { code: failure, body: {} };
    if (name === "RunNodeTask") return this.run(variables["input"] as Record<string, unknown>);
    if (name === "GetNodeTask") return data({ nodeTask: this.advance(this.tasks.get(variables["id"] as string)!) });
    const expiresAt = new Date(Date.now() + 3600_000).toISOString();
    return data({
      cancelNodeTask: { id: "" }, reportOperation: { id: "" }, issueRuntimeSecret: { id: "sec_1" },
      redeemRuntimeSecret: { value: "redeemed-secret" }, renewOperationToken: { token: `renewed-${token}`, expiresAt },
    });
  }

  /** The same key with the same kind, spec and timeout is the same task. */
  private run(input: Record<string, unknown>): Reply {
    const id = `${String(input["memberId"])}/${String(input["idempotencyKey"])}`;
    const task = this.tasks.get(id) ?? { id, input, state: "PENDING", begun: 0 };
    this.tasks.set(id, task);
    if (JSON.stringify(task.input) !== JSON.stringify(input)) {
      const extensions = { code: "IDEMPOTENCY_KEY_REUSED", retryable: false };
      return { code: 200, body: { errors: [{ message: "the key was used", extensions }] } };
    }
    return data({ runNodeTask: this.advance(task) });
  }

  private advance(task: Task): Task {
    if (task.state === "PENDING" || task.state === "RUNNING") {
      const { memberId, kind, spec } = task.input as { memberId: string; kind: string; spec: Record<string, unknown> };
      Object.assign(task, this.node(memberId, kind, spec) ?? { state: "RUNNING" });
      task.begun++;
    }
    return task;
  }
}

function data(body: object): Reply { return { code: 200, body: { data: body } }; }

/** FakeAdapter is an adapter that runs in the test. */
export class FakeAdapter {
  constructor(private readonly platform: FakePlatform, readonly controller: Controller, readonly url: string) {}

  stop(): Promise<void> { return this.controller.stop(); }

  /** call sends a signed request and returns the status and the body of its answer. */
  async call<T = Record<string, unknown>>(method: string, target: string, body?: unknown, token?: string,
    headers: Record<string, string> = {}): Promise<{ code: number; body: T }> {
    const raw = body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body);
    const answer = await fetch(this.url + target, {
      method, ...(raw === "" ? {} : { body: raw }),
      headers: {
        authorization: `Bearer ${token ?? this.platform.token(method, target, raw)}`,
        "content-type": "application/json", "x-platform-token": "call-token", ...headers,
      },
    });
    return { code: answer.status, body: await answer.json() as T };
  }

  /** put dispatches an operation. */
  put(d: Dispatch): Promise<{ code: number; body: Status & { code?: string; path?: string } }> {
    return this.call("PUT", `/v1/operations/${d.operationId}`, d);
  }

  /** end follows an operation to its end, and returns its status. */
  async end(operationId: string, seconds = 30): Promise<Status> {
    return this.until(operationId, (status) => ["succeeded", "failed", "canceled"].includes(status.state), seconds);
  }

  /** until follows an operation until its status matches. */
  async until(operationId: string, wanted: (status: Status) => boolean, seconds = 30): Promise<Status> {
    const end = Date.now() + 1000 * seconds;
    for (let cursor = ""; Date.now() < end;) {
      const { code, body } = await this.call<Status>("GET", `/v1/operations/${operationId}`);
      if (code === 200 && wanted(body)) return body;
      const page = await this.call<{ cursor: string }>("GET", `/v1/operations?wait=1&after=${cursor}`);
      cursor = page.body.cursor;
    }
    throw new Error(`operation ${operationId} did not reach the expected state`);
  }
}
