// The public GraphQL API, as any outsider uses it: node tasks, reports and secrets, with a narrowed token.
import { randomBytes } from "node:crypto";
import { clip, Failure, maxMessage, type Platform, type Status } from "./contract.js";
import { hide, Log } from "./log.js";
import { Interrupted, pause, signal, using, within } from "./scope.js";
import { TaskResult, type Answer, type Task } from "./tasks.js";

const callSeconds = 40; // longer than any wait the API offers
const taskWait = 20; // seconds that one read of a task waits at the platform
const maxAnswer = 4 << 20;
const renewBefore = 120_000;
const renewPause = 15_000;
const firstPause = 0.2;
const longestPause = 5;
const maxReported = 256; // members of one report

/** ApiError is a refusal of the public API, or an answer that did not arrive. */
export class ApiError extends Error {
  constructor(readonly code: string, readonly said: string, readonly retryable: boolean,
    readonly reasons: readonly { code: string; message: string; path?: string }[] = []) {
    super(`${code}: ${said}`);
  }
}

const fields = "id state message exitCode stdout stderr result";
const documents = {
  run: `mutation RunNodeTask($input: RunNodeTaskInput!) { runNodeTask(input: $input) { ${fields} } }`,
  get: `query GetNodeTask($id: ID!, $waitSeconds: Int) { nodeTask(id: $id, waitSeconds: $waitSeconds) { ${fields} } }`,
  cancel: "mutation CancelNodeTask($taskId: ID!) { cancelNodeTask(taskId: $taskId) { id } }",
  report: "mutation ReportOperation($input: ReportOperationInput!) { reportOperation(input: $input) { id } }",
  renew: "mutation RenewOperationToken { renewOperationToken { token expiresAt } }",
  issue: "mutation IssueRuntimeSecret($input: IssueRuntimeSecretInput!) { issueRuntimeSecret(input: $input) { id } }",
  redeem: "mutation RedeemRuntimeSecret($secretId: ID!) { redeemRuntimeSecret(secretId: $secretId) { value } }",
};

/** SecretOptions state who receives a runtime secret. With a member it is for that member's node, by a task's
 * secretRef; without, for the adapter itself. again allows repeated delivery until it expires: a task that must survive
 * a restart of the node's agent needs that. */
export interface SecretOptions {
  memberId?: string; artifactDigest?: string; ttlSeconds?: number; again?: boolean; key?: string;
}

/** traceId returns the id of the trace that a W3C trace context names; empty for one that is malformed. */
export function traceId(traceparent: string): string {
  return /^00-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/.exec(traceparent)?.[1] ?? "";
}

/** PlatformClient speaks to the public API with a token that it renews before its end. */
export class PlatformClient {
  private renewedAt = -Infinity;

  constructor(private access: Platform, private readonly correlationId = "", private readonly log = new Log("error"),
    private readonly renews = true, private readonly traceparent = "") {
    hide(access.token);
  }

  /** take replaces the access when a new dispatch has a new token. */
  take(access: Platform): void {
    hide(access.token);
    this.access = access;
  }

  /** execute sends one query or mutation, once, and returns its data; a refusal is an ApiError. */
  async execute<T>(query: string, variables: object = {}): Promise<T> {
    await this.renewIfDue();
    return this.send<T>(query, variables);
  }

  /** persist repeats a call until it succeeds, is refused for good, or the scope ends. Without cut, the end of the
   * scope does not cut off a request that is under way: so everything that it creates is known. */
  async persist<T>(query: string, variables: object, cut = true): Promise<T> {
    for (let wait = firstPause; ; wait = Math.min(2 * wait, longestPause)) {
      signal().throwIfAborted();
      try {
        await this.renewIfDue();
        const call = (): Promise<T> => this.send<T>(query, variables);
        return await (cut ? call() : using(new AbortController().signal, call));
      } catch (error) {
        if (!(error instanceof ApiError && error.retryable)) throw error;
        this.log.debug("the platform did not answer; trying again", { error: String(error), wait });
      }
      await pause(wait);
    }
  }

  /** run requests a node task in the sandbox of a member and waits until it has ended. The result may be a failure of
   * the task. When the scope ends first, the task is canceled, except when the adapter stops: its next start reads the
   * task again. */
  async run(memberId: string, key: string, task: Task): Promise<TaskResult> {
    const { kind, spec, timeoutSeconds = 60 } = task;
    const input = { memberId, kind, spec, timeoutSeconds, idempotencyKey: key };
    const { runNodeTask } = await this.persist<{ runNodeTask: Answer }>(documents.run, { input }, false);
    try {
      return await this.await(new TaskResult(runNodeTask));
    } catch (error) {
      if (!(error instanceof Interrupted && error.why === "stopping")) await this.abandon(runNodeTask.id);
      throw error;
    }
  }

  private async await(task: TaskResult): Promise<TaskResult> {
    while (!task.ended) {
      const asked = Date.now();
      const variables = { id: task.id, waitSeconds: taskWait };
      task = new TaskResult((await this.persist<{ nodeTask: Answer }>(documents.get, variables)).nodeTask);
      // A platform that answers without waiting must not be called in a tight loop.
      if (!task.ended && Date.now() - asked < 1000 * firstPause) await pause(firstPause);
    }
    return task;
  }

  /** Best effort: every task also has a timeout of its own. */
  private async abandon(taskId: string): Promise<void> {
    try {
      await using(AbortSignal.timeout(1000 * longestPause), () => this.send(documents.cancel, { taskId }));
    } catch (error) {
      this.log.debug("node task not canceled", { task: taskId, error: String(error) });
    }
  }

  /** report sends an operation's status once, without a retry: the platform reads the feed as well. */
  async report(status: Status): Promise<void> {
    const { operationId, attempt, phase, percent, message } = status;
    const members = status.members.map((m) => ({
      id: m.id, status: m.status.toUpperCase(), health: m.health.toUpperCase(),
      ...(m.detail === undefined ? {} : { detail: m.detail }),
    }));
    const said = { operationId, attempt, phase, percent, message: clip(message, 2000) };
    for (let n = 0; n === 0 || n < members.length; n += maxReported) {
      await this.execute(documents.report, { input: { ...said, members: members.slice(n, n + maxReported) } });
    }
  }

  /** issueSecret creates a runtime secret of the instance and returns its id. */
  async issueSecret(instanceId: string, purpose: string, o: SecretOptions = {}): Promise<string> {
    const { again, key, ...rest } = o;
    const input = {
      instanceId, purpose, audience: o.memberId === undefined ? "ADAPTER" : "NODE",
      delivery: again === true ? "UNTIL_EXPIRY" : "ONCE", idempotencyKey: key ?? randomBytes(16).toString("hex"), ...rest,
    };
    return (await this.persist<{ issueRuntimeSecret: { id: string } }>(documents.issue, { input })).issueRuntimeSecret.id;
  }

  /** redeemSecret takes delivery of a secret that is bound to the adapter. It is masked in the log from then on; do not
   * write it anywhere else. */
  async redeemSecret(secretId: string): Promise<string> {
    type Redeemed = { redeemRuntimeSecret: { value: string | null } };
    const { value } = (await this.persist<Redeemed>(documents.redeem, { secretId })).redeemRuntimeSecret;
    if (value === null || value === "") throw new ApiError("INTERNAL", "the platform returned no value", false);
    hide(value);
    return value;
  }

  /** Its failure is not raised: the call's own refusal states more. A token without an end is not renewed. */
  private async renewIfDue(): Promise<void> {
    const left = Date.parse(this.access.tokenExpiresAt) - Date.now();
    if (!this.renews || !(left < renewBefore) || Date.now() - this.renewedAt <= renewPause) return;
    this.renewedAt = Date.now();
    try {
      type Renewed = { renewOperationToken: { token: string; expiresAt: string } };
      const { token, expiresAt } = (await within(longestPause, () => this.send<Renewed>(documents.renew, {}))).renewOperationToken;
      this.take({ ...this.access, token, tokenExpiresAt: expiresAt });
    } catch (error) {
      this.log.debug("operation token not renewed", { error: String(error) });
    }
  }

  private async send<T>(query: string, variables: object): Promise<T> {
    const scope = signal();
    scope.throwIfAborted();
    const headers: Record<string, string> = {
      "Content-Type": "application/json", Authorization: `Bearer ${this.access.token}`,
      "User-Agent": "gpuaas-adapter-typescript",
    };
    if (/^[A-Za-z0-9._-]{1,64}$/.test(this.correlationId)) headers["X-Correlation-ID"] = this.correlationId;
    if (traceId(this.traceparent) !== "") headers["traceparent"] = this.traceparent; // the served call's trace
    try {
      const response = await fetch(this.access.graphqlUrl, {
        method: "POST", redirect: "error", body: JSON.stringify({ query, variables }), headers,
        signal: AbortSignal.any([scope, AbortSignal.timeout(1000 * callSeconds)]),
      });
      return dataOf<T>(response.status, await bounded(response));
    } catch (error) {
      scope.throwIfAborted();
      if (error instanceof ApiError) throw error;
      throw new ApiError("UNAVAILABLE", `the platform does not answer: ${causeOf(error)}`, true);
    }
  }
}

/** fetch states only that it failed; its cause states why. */
function causeOf(error: unknown): string {
  const cause = (error as { cause?: { code?: string; message?: string } } | null)?.cause;
  return cause?.code ?? cause?.message ?? String(error);
}

async function bounded(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += (part as Uint8Array).length;
    if (size > maxAnswer) {
      throw new ApiError("DOCUMENT_TOO_LARGE", `the platform's answer is longer than ${maxAnswer} bytes`, false);
    }
    parts.push(part as Uint8Array);
  }
  return Buffer.concat(parts).toString();
}

interface Envelope<T> {
  data?: T | null;
  errors?: { message: string; extensions?: { code?: string; retryable?: boolean; reasons?: ApiError["reasons"] } }[];
}

function dataOf<T>(status: number, text: string): T {
  if (status === 429 || status >= 500) throw new ApiError("UNAVAILABLE", `the platform answers ${status}`, true);
  let answer: Envelope<T>;
  try {
    answer = JSON.parse(text) as Envelope<T>;
  } catch {
    throw new ApiError("INTERNAL", `the platform answers ${status} without JSON`, false);
  }
  const refused = answer.errors?.[0];
  if (refused !== undefined) {
    const { code = "INTERNAL", retryable, reasons } = refused.extensions ?? {};
    throw new ApiError(code, refused.message, retryable === true, reasons);
  }
  if (answer.data == null) throw new ApiError("INTERNAL", `the platform answers ${status} without data`, false);
  return answer.data;
}

/** asFailure returns a refusal of the public API as a failure with its owner; other errors pass. */
export function asFailure(step: string, error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  return new Failure("PLATFORM_REFUSED", "platform", true, clip(`step ${step}: ${error.message}`, maxMessage));
}
