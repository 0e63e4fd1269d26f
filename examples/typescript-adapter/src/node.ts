// The counter's requests to nodes: one script with verbs, files, and one supervised process for each member.
import * as fs from "node:fs";
import {
  nameOf, pause, shell, tasks, type Health, type Member, type Run, type Settings, type Task, type TaskResult, type Work,
} from "./kit/index.js";

const processName = "counter";
const scriptPath = "/srv/counter/counter.sh";
const settingsPath = "/srv/counter/settings";
const labelsPath = "/srv/counter/labels.json";
const script = fs.readFileSync(new URL("../../assets/counter.sh", import.meta.url), "utf8");

/** quick bounds, in seconds, a task that a healthy node does at once. */
export const quick = 10;

/** verb runs a verb of the script. A script that was never written has done nothing: the task prints nothing. */
export function verb(...args: string[]): Task {
  const guard = `f="$GPUAAS_MEMBER_ROOT${scriptPath}"; test -f "$f" || exit 0; exec sh "$f" "$@"`;
  return tasks.run([...shell(guard), "counter", ...args], { seconds: 30 });
}

const running = tasks.run(shell(`sed -n 's/^version //p' "$GPUAAS_MEMBER_ROOT/srv/counter/running"`));
export const stopProcess = tasks.stopProcess(processName, quick);
export const inspect = tasks.inspectProcess(processName, quick);
export const readLabels = tasks.run(shell(`cat "$GPUAAS_MEMBER_ROOT${labelsPath}"`));
export const writeLabels = (labels: object): Task => tasks.writeFile(labelsPath, { content: JSON.stringify(labels) });

/** launch starts a member with a version and config, whatever it ran with before. The prefix distinguishes the steps of
 * several launches in one operation. */
export async function launch(run: Run, member: Member, prefix: string, version: string, config: unknown): Promise<void> {
  const step = (config as Settings | null)?.["step"] ?? 1;
  const content = `version ${version.replace(/[\u0000-\u001f]/g, " ")}\nstep ${String(step)}\n`;
  const count = shell(`exec sh "$GPUAAS_MEMBER_ROOT${scriptPath}" count`);
  const up = (verb("up").spec as { command: string[] }).command;
  const steps: Record<string, Task> = {
    stop: stopProcess, script: tasks.writeFile(scriptPath, { mode: "0755", content: script }),
    settings: tasks.writeFile(settingsPath, { content }), fresh: verb("fresh"),
    start: tasks.startProcess(processName, count, { restart: "on_failure", maxRestarts: 5, stopSeconds: 5 }),
    up: tasks.probe({ command: up, attempts: 100, interval: 0.3 }),
  };
  for (const [name, task] of Object.entries(steps)) await run.do(member, prefix + name, task);
}

/** judge reads what a node reports of a member's process; undefined when the node did not answer. */
export function judge(result: TaskResult | undefined): [Health, string] {
  if (result === undefined || result.process === "") return ["unknown", "its node did not answer"];
  return result.process === "running" ? ["healthy", "it counts"] : ["unhealthy", `its process is ${result.process}`];
}

/** health returns a member's health in the middle of an operation. */
export async function health(run: Run, member: Member): Promise<Health> {
  return judge(await run.ask(member, "inspect", inspect, 5))[0];
}

/** versions returns the version that each member reports to run. */
export async function versions(run: Run, members: Member[]): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const member of members) {
    const result = await run.ask(member, "version", running);
    found[nameOf(member)] = result === undefined ? "unknown" : result.stdout.trim();
  }
  return found;
}

/** workOf reads the script's list of batches. */
export function workOf(member: Member, text: string): Work[] {
  const rows = text.split("\n").map((line) => line.split("\t")).filter((fields) => fields.length === 5);
  return rows.map(([id = "", , since = "0", seconds = "", owner = ""]) => ({
    kind: "batch", id, name: `batch of ${seconds} seconds`, memberId: member.id, owner,
    since: new Date(Number(since) * 1000).toISOString(), message: `runs on ${nameOf(member)}`,
  }));
}

/** oldest puts the batch first that has run longest. */
export function oldest(work: Work[]): Work[] {
  return [...work].sort((a, b) => Date.parse(a.since) - Date.parse(b.since));
}

/** untilIdle waits until a member has no batch, and reports what it waits for. A node that does not answer may have
 * batches: only an answer ends the wait. */
export async function untilIdle(run: Run, member: Member, tell: (work: Work[] | undefined) => void): Promise<void> {
  for (let known = -1; known !== 0;) {
    const result = await run.look(member, "work", verb("change", String(known), "15"));
    const work = result.succeeded ? workOf(member, result.stdout) : undefined;
    known = work?.length ?? -1;
    tell(work);
    if (work === undefined) await pause(2);
  }
}
