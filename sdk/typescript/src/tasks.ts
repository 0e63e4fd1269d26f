// Node tasks: what an adapter requests of a node in the sandbox of one member, and the result.
import { Failure, type Member } from "./contract.js";

/** Env maps names of variables to values in clear, or to { sealed } or { secretRef }. */
export type Env = Record<string, string | { sealed: string } | { secretRef: string }>;

/** Task is a kind of node task with its spec, whose fields docs/node-tasks.md lists. */
export interface Task { kind: string; spec: object; timeoutSeconds?: number }

/** Answer is a node task as the public API returns it. */
export interface Answer {
  id: string; state: string; message?: string | null; exitCode?: number | null; stdout?: string | null;
  stderr?: string | null; result?: Record<string, unknown> | null;
}

/** TaskResult is how a node task ended. */
export class TaskResult {
  readonly id: string;
  readonly state: string;
  readonly message: string;
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
  readonly result: Readonly<Record<string, unknown>>;

  constructor(answer: Answer) {
    const result = answer.result ?? {};
    const text = (name: "stdout" | "stderr"): string => answer[name] || String(result[name] ?? "");
    this.id = answer.id;
    this.state = answer.state;
    this.message = answer.message ?? "";
    this.exitCode = answer.exitCode ?? (result["exitCode"] as number | undefined);
    this.stdout = text("stdout");
    this.stderr = text("stderr");
    this.result = result;
  }

  /** succeeded reports whether the task did what was requested. */
  get succeeded(): boolean { return this.state === "SUCCEEDED"; }

  /** ended reports whether the task has ended, well or badly. */
  get ended(): boolean { return this.state !== "PENDING" && this.state !== "RUNNING"; }

  /** process returns the state of an inspected process, such as "running"; empty when not reported. */
  get process(): string {
    const found = this.result["process"] as { state?: string } | undefined;
    return this.succeeded ? (found?.state ?? "") : "";
  }

  /** residue counts what a teardown left: processes, mounts and files. */
  get residue(): number {
    const left = this.result["residue"] as { processes?: unknown[]; mounts?: unknown[]; files?: number } | undefined;
    return (left?.processes?.length ?? 0) + (left?.mounts?.length ?? 0) + (left?.files ?? 0);
  }

  /** require throws a failure that the node's owner has to fix, when the task did not succeed. */
  require(step: string, member: Member): this {
    if (this.succeeded) return this;
    const tail = this.stderr.trim().slice(-800);
    const what = `step ${step} on member ${member.id} ended ${this.state}: ${this.message}`;
    throw new Failure("NODE_TASK_FAILED", "node", true, tail === "" ? what : `${what}: ${tail}`);
  }
}

/** timed returns the task with another bound on its time, 1 to 3600 seconds. */
export function timed(task: Task, seconds: number): Task { return { ...task, timeoutSeconds: seconds }; }

/** shell is a command line for a shell. */
export function shell(line: string): string[] { return ["sh", "-c", line]; }

function task(kind: string, fields: Record<string, unknown>, seconds: number | undefined): Task {
  const spec = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  return { kind, spec, timeoutSeconds: seconds ?? 60 };
}

function variables(env: Env | undefined): object[] | undefined {
  return env && Object.entries(env).map(([name, value]) => ({ name, ...(typeof value === "string" ? { value } : value) }));
}

export interface RunOptions { env?: Env; stdin?: string; user?: string; workDir?: string; seconds?: number }

/** run runs a command to its end, without a shell. */
export function run(command: string[], { env, seconds, ...rest }: RunOptions = {}): Task {
  return task("RUN", { command, env: variables(env), ...rest }, seconds);
}

export interface FileOptions {
  content?: string; sealed?: string; secretRef?: string; mode?: string; owner?: string; seconds?: number;
}

/** writeFile writes a file whole or not at all, and makes its folders. */
export function writeFile(path: string, { seconds, ...rest }: FileOptions): Task {
  return task("WRITE_FILE", { path, ...rest, makeDirs: true }, seconds);
}

export interface ProcessOptions {
  env?: Env; user?: string; workDir?: string; restart?: "never" | "on_failure" | "always"; maxRestarts?: number;
  stopSeconds?: number; stopSignal?: string; seconds?: number;
}

/** startProcess starts a supervised process, which must stay in the foreground. */
export function startProcess(name: string, command: string[], o: ProcessOptions = {}): Task {
  const restart = { policy: o.restart ?? "never", maxRestarts: o.maxRestarts ?? 0, backoffSeconds: 1 };
  const { user, workDir, stopSignal, stopSeconds = 10 } = o;
  return task("START_PROCESS", {
    name, command, env: variables(o.env), user, workDir, restart, stopSignal, stopTimeoutSeconds: stopSeconds,
  }, o.seconds);
}

/** stopProcess stops a supervised process; one that is absent is a success. */
export function stopProcess(name: string, seconds?: number): Task { return task("STOP_PROCESS", { name }, seconds); }

/** inspectProcess reads the state of a supervised process. */
export function inspectProcess(name: string, seconds?: number): Task {
  return task("INSPECT_PROCESS", { name }, seconds);
}

export interface ProbeOptions {
  command?: string[]; tcp?: number; http?: { port: number; path: string }; attempts?: number; interval?: number;
  timeout?: number; seconds?: number;
}

/** probe tests several times whether something answers: a command, a TCP port, or a GET. */
export function probe(o: ProbeOptions): Task {
  return task("PROBE", {
    exec: o.command && { command: o.command }, tcp: o.tcp === undefined ? undefined : { port: o.tcp }, http: o.http,
    attempts: o.attempts ?? 1, intervalSeconds: o.interval ?? 1, timeoutSeconds: o.timeout ?? 5,
  }, o.seconds);
}

/** fetchArtifact downloads an artifact of the manifest to the node, verified against its digest. */
export function fetchArtifact(digest: string, path: string,
  o: { placed?: string; mode?: string; owner?: string; seconds?: number } = {}): Task {
  return task("FETCH_ARTIFACT", { digest, path, mode: o.mode, owner: o.owner, as: o.placed }, o.seconds ?? 600);
}

/** cloudInit applies cloud-init user data in the member, as on a first boot. */
export function cloudInit(userData: string, instanceId: string,
  o: { sealed?: boolean; hostname?: string; seconds?: number } = {}): Task {
  const data = { [o.sealed === true ? "userDataSealed" : "userData"]: userData };
  return task("CLOUD_INIT", { ...data, instanceId, hostname: o.hostname }, o.seconds ?? 600);
}

/** residue lists everything of the member that is left on the node. */
export function residue(): Task { return task("RESIDUE", {}, undefined); }

/** teardown stops everything of the member and deletes its sandbox. */
export function teardown(seconds = 300): Task { return task("TEARDOWN", {}, seconds); }
