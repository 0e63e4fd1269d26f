// What the counter asks of nodes: one script with verbs, files, and one supervised process for each member.
import * as fs from "node:fs";
import type { Health, Instance, Member, Work } from "../kit/contract.js";
import type { Task, TaskResult } from "../kit/platform.js";
import type { Run } from "../kit/run.js";

export const component = "counter";
const processName = "counter";
const scriptPath = "/srv/counter/counter.sh";
const settingsPath = "/srv/counter/settings";
const labelsPath = "/srv/counter/labels.json";
const script = fs.readFileSync(new URL("../../../assets/counter.sh", import.meta.url), "utf8");

/** quick bounds, in seconds, a task that a healthy node does at once; askTime how long one member may take to be asked. */
export const quick = 10;
export const askTime = 5;

export interface Settings { version: string; step: number }

export function settingsOf(version: string, config: unknown): Settings {
  return { version, step: (config as { step?: number } | null | undefined)?.step ?? 1 };
}
export function instanceSettings(i: Instance): Settings { return settingsOf(i.version, i.config); }

export function name(member: Member): string { return `counter-${member.index}`; }
export function names(members: Member[]): string { return members.map(name).join(", "); }
export function succeeded(result: TaskResult): boolean { return result.state === "SUCCEEDED"; }

/** verb runs a verb of the script. Where it was never written nothing can have happened: it prints nothing. */
export function verb(...args: string[]): Task {
  const guard = `f="$GPUAAS_MEMBER_ROOT${scriptPath}"; test -f "$f" || exit 0; exec sh "$f" "$@"`;
  return { kind: "RUN", spec: { command: ["sh", "-c", guard, "counter", ...args] }, timeoutSeconds: 30 };
}

export function within(task: Task, seconds: number): Task { return { ...task, timeoutSeconds: seconds }; }
export const inspect: Task = { kind: "INSPECT_PROCESS", spec: { name: processName }, timeoutSeconds: askTime };
export const stopProcess: Task = { kind: "STOP_PROCESS", spec: { name: processName }, timeoutSeconds: quick };
export const runningVersion: Task = {
  kind: "RUN", spec: { command: ["sh", "-c", `sed -n 's/^version //p' "$GPUAAS_MEMBER_ROOT/srv/counter/running"`] }, timeoutSeconds: quick,
};
export const readLabels: Task = { kind: "RUN", spec: { command: ["sh", "-c", `cat "$GPUAAS_MEMBER_ROOT${labelsPath}"`] }, timeoutSeconds: quick };
export function writeLabels(labels: object): Task {
  return { kind: "WRITE_FILE", spec: { path: labelsPath, content: JSON.stringify(labels), makeDirs: true } };
}

/** launch brings a member to these settings, whatever it ran with before. The prefix tells the steps of one launch from
 * those of another in one operation. */
export async function launch(run: Run, member: Member, prefix: string, to: Settings, signal: AbortSignal = run.signal): Promise<void> {
  const start = {
    name: processName, command: ["sh", "-c", `exec sh "$GPUAAS_MEMBER_ROOT${scriptPath}" count`], stopTimeoutSeconds: 5,
    restart: { policy: "on_failure", maxRestarts: 5, backoffSeconds: 1 },
  };
  const command = (verb("up").spec as { command: string[] }).command;
  const steps: [string, Task][] = [
    ["stop", stopProcess],
    ["script", { kind: "WRITE_FILE", spec: { path: scriptPath, mode: "0755", content: script, makeDirs: true } }],
    ["settings", { kind: "WRITE_FILE", spec: { path: settingsPath, content: `version ${oneLine(to.version)}\nstep ${to.step}\n`, makeDirs: true } }],
    ["fresh", verb("fresh")],
    ["start", { kind: "START_PROCESS", spec: start }],
    ["up", { kind: "PROBE", spec: { exec: { command }, attempts: 100, intervalSeconds: 0.3, timeoutSeconds: 5 } }],
  ];
  for (const [step, task] of steps) await run.do(member, prefix + step, task, signal);
}

/** health asks the node how the member's process is: unknown when it cannot be asked. */
export async function health(run: Run, member: Member, signal: AbortSignal = run.signal): Promise<Health> {
  if (member.node.reachable === false) return "unknown";
  try {
    return judge(await run.look(member, "inspect", inspect, AbortSignal.any([signal, AbortSignal.timeout(askTime * 1000)]))).health;
  } catch {
    signal.throwIfAborted();
    return "unknown";
  }
}

/** judge reads what a node says of a member's process. */
export function judge(result: TaskResult): { health: Health; message: string } {
  const process = result.result?.["process"] as { state?: string } | undefined;
  if (!succeeded(result) || process?.state === undefined) return { health: "unknown", message: "its node did not answer" };
  if (process.state === "running") return { health: "healthy", message: "it counts" };
  return { health: "unhealthy", message: `its process is ${process.state}` };
}

/** workOf reads the script's list of batches. */
export function workOf(member: Member, text: string): Work[] {
  return text.split("\n").map((line) => line.split("\t")).filter((fields) => fields.length === 5).map(([id = "", , since = "0", seconds = "", owner = ""]) => ({
    kind: "batch", id, name: `batch of ${seconds} seconds`, memberId: member.id, owner, since: new Date(Number(since) * 1000).toISOString(),
    message: `runs on ${name(member)}`,
  }));
}

/** oldest are the batches that have run longest. */
export function oldest(work: Work[], most: number): Work[] {
  return [...work].sort((a, b) => Date.parse(a.since) - Date.parse(b.since)).slice(0, most);
}

function oneLine(text: string): string { return text.replace(/[\u0000-\u001f]/g, " "); }
