// The public GraphQL API, as any outsider uses it: node tasks and reports, with the narrowed token of a dispatch.
import { Failure, type Health, type MemberStatus, type Platform, type Status } from "./contract.js";

const callTimeout = 40_000; // longer than any wait the API offers
const taskWait = 20; // seconds one question after a task waits at the platform
const maxAnswer = 4 << 20;
const renewBefore = 120_000;
const renewPause = 15_000;
const backoffFirst = 200;
const backoffMost = 5000;

export interface Task { kind: string; spec: object; timeoutSeconds?: number }
export interface TaskResult {
  id: string; state: string; message: string; exitCode?: number | null; stdout?: string; stderr?: string;
  result?: Record<string, unknown> | null;
}

/** ApiError is a refusal of the public API. */
export class ApiError extends Error {
  constructor(readonly code: string, message: string, readonly retryable: boolean) { super(message); }
}

export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = (): void => { clearTimeout(timer); reject(signal.reason); };
    const timer = setTimeout(() => { signal.removeEventListener("abort", stop); resolve(); }, milliseconds);
    signal.addEventListener("abort", stop, { once: true });
  });
}

const taskFields = "id state message exitCode stdout stderr result";
const documents = {
  run: `mutation RunNodeTask($input: RunNodeTaskInput!) { runNodeTask(input: $input) { ${taskFields} } }`,
  get: `query GetNodeTask($id: ID!, $waitSeconds: Int) { nodeTask(id: $id, waitSeconds: $waitSeconds) { ${taskFields} } }`,
  cancel: "mutation CancelNodeTask($taskId: ID!) { cancelNodeTask(taskId: $taskId) { id } }",
  report: "mutation ReportOperation($input: ReportOperationInput!) { reportOperation(input: $input) { id } }",
  renew: "mutation RenewOperationToken { renewOperationToken { token expiresAt } }",
};

export class PlatformClient {
  private renewedAt = 0;

  constructor(private access: Platform, private readonly correlationId: string, private readonly renews: boolean) {}

  /** take replaces the access, when a new dispatch brought a new token. */
  take(access: Platform): void { this.access = access; }

  /** run asks for a node task in the sandbox of a member and waits until it has ended. When the signal ends first,
   * the node is asked to stop the task, unless keep says that somebody will ask after it again. */
  async run(memberId: string, key: string, task: Task, signal: AbortSignal, keep: () => boolean): Promise<TaskResult> {
    signal.throwIfAborted();
    const input = { memberId, kind: task.kind, spec: task.spec, timeoutSeconds: task.timeoutSeconds ?? 60, idempotencyKey: key };
    // The order itself is not cut off: without its answer nobody would know the id of a task that was made.
    const made = await this.persist<{ runNodeTask: TaskResult }>(documents.run, { input }, signal, false);
    try {
      return await this.await(made.runNodeTask, signal);
    } catch (error) {
      if (!keep()) await this.abandon(made.runNodeTask.id);
      throw error;
    }
  }

  private async await(task: TaskResult, signal: AbortSignal): Promise<TaskResult> {
    while (task.state === "PENDING" || task.state === "RUNNING") {
      const asked = Date.now();
      const seen = await this.persist<{ nodeTask: TaskResult }>(documents.get, { id: task.id, waitSeconds: taskWait }, signal, true);
      task = seen.nodeTask;
      // A platform that answers without waiting must not be asked in a tight loop.
      if ((task.state === "PENDING" || task.state === "RUNNING") && Date.now() - asked < backoffFirst) await pause(backoffFirst, signal);
    }
    return { ...task, ...plain(task.result) };
  }

  private async abandon(taskId: string): Promise<void> {
    try {
      await this.call(documents.cancel, { taskId }, AbortSignal.timeout(backoffMost));
    } catch {
      // Best effort: every task also has a timeout of its own.
    }
  }

  /** report says how an operation goes, once: the platform also reads the feed. */
  async report(status: Status, signal: AbortSignal): Promise<void> {
    const members = status.members.slice(0, 256).map((m) => ({
      id: m.id, status: upper(m.status), health: upper(m.health), ...(m.detail === undefined ? {} : { detail: m.detail }),
    }));
    const { operationId, attempt, phase, percent, message } = status;
    await this.call(documents.report, { input: { operationId, attempt, phase, percent, message: message.slice(0, 2000), members } }, signal);
  }

  /** persist repeats a call until it succeeds, is refused for good, or the signal ends. */
  private async persist<T>(query: string, variables: object, signal: AbortSignal, cut: boolean): Promise<T> {
    for (let wait = backoffFirst; ; wait = Math.min(2 * wait, backoffMost)) {
      try {
        await this.renew();
        return await this.call<T>(query, variables, cut ? signal : new AbortController().signal);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof ApiError && !error.retryable) throw error;
        await pause(wait, signal);
      }
    }
  }

  /** renew gets a fresh token shortly before the old one ends. Its failure is left to the call, which says more. */
  private async renew(): Promise<void> {
    const left = Date.parse(this.access.tokenExpiresAt) - Date.now();
    if (!this.renews || !(left < renewBefore) || Date.now() - this.renewedAt <= renewPause) return;
    this.renewedAt = Date.now();
    try {
      const fresh = await this.call<{ renewOperationToken: { token: string; expiresAt: string } }>(documents.renew, {}, AbortSignal.timeout(backoffMost));
      this.access = { ...this.access, token: fresh.renewOperationToken.token, tokenExpiresAt: fresh.renewOperationToken.expiresAt };
    } catch {
      // The old token may still do.
    }
  }

  private async call<T>(query: string, variables: object, signal: AbortSignal): Promise<T> {
    const response = await fetch(this.access.graphqlUrl, {
      method: "POST", redirect: "error", body: JSON.stringify({ query, variables }),
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${this.access.token}`, "X-Correlation-ID": this.correlationId },
      signal: AbortSignal.any([signal, AbortSignal.timeout(callTimeout)]),
    });
    const text = await bounded(response);
    if (response.status === 429 || response.status >= 500) throw new ApiError("UNAVAILABLE", `the platform answers ${response.status}`, true);
    const answer = JSON.parse(text) as { data?: T; errors?: { message: string; extensions?: { code?: string; retryable?: boolean } }[] };
    const refused = answer.errors?.[0];
    if (refused !== undefined) throw new ApiError(refused.extensions?.code ?? "INTERNAL", refused.message, refused.extensions?.retryable === true);
    if (answer.data === undefined) throw new ApiError("INTERNAL", `the platform answers ${response.status} without data`, false);
    return answer.data;
  }
}

async function bounded(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += (part as Uint8Array).length;
    if (size > maxAnswer) throw new ApiError("DOCUMENT_TOO_LARGE", `the platform's answer is longer than ${maxAnswer} bytes`, false);
    parts.push(part as Uint8Array);
  }
  return Buffer.concat(parts).toString();
}

/** plain takes the output fields from a result object, where the agent put them there. */
function plain(result: TaskResult["result"]): Partial<TaskResult> {
  const found: Partial<TaskResult> = {};
  if (typeof result?.["exitCode"] === "number") found.exitCode = result["exitCode"];
  if (typeof result?.["stdout"] === "string") found.stdout = result["stdout"];
  if (typeof result?.["stderr"] === "string") found.stderr = result["stderr"];
  return found;
}

const upper = (word: MemberStatus | Health): string => word.toUpperCase();

/** taskFailure is a node task that did not succeed, as the failure of what needed it. */
export function taskFailure(step: string, memberId: string, result: TaskResult): Failure {
  const tail = (result.stderr ?? "").trim().slice(-800);
  return new Failure("NODE_TASK_FAILED", "node", true, `step ${step} on member ${memberId} ended ${result.state}: ${result.message}${tail === "" ? "" : `: ${tail}`}`);
}

/** asFailure gives a refusal of the public API its owner; other errors pass. */
export function asFailure(step: string, error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  return new Failure("PLATFORM_REFUSED", "platform", true, `step ${step}: ${error.code} ${error.message}`);
}
