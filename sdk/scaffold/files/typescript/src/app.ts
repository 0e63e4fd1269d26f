// __NAME__: each member is a process that writes down, every few seconds, that it is alive. Change it.
import * as fs from "node:fs";
import type { App, Call } from "./kit/app.js";
import { refuse, type ActionRequest, type Asked, type Health, type Kind, type Member, type MemberObservation, type PlanAnswer } from "./kit/contract.js";
import type { Task } from "./kit/platform.js";
import type { Run } from "./kit/run.js";

interface Manifest { app: string; components: App["info"]["components"]; configSchema: App["info"]["configSchema"]; actions: Omit<App["actions"][number], "do">[] }

const manifest = JSON.parse(fs.readFileSync(new URL("../../manifest.json", import.meta.url), "utf8")) as Manifest;
const folder = "/srv/__NAME__";
const process = "worker";

// What runs in a member. GPUAAS_MEMBER_ROOT is empty where the member has a file system of its own.
const script = `dir="\${GPUAAS_MEMBER_ROOT:-}${folder}"
while :; do
    date -u +%Y-%m-%dT%H:%M:%SZ >> "$dir/beats"
    sleep "$INTERVAL" & wait $!
done
`;

const shell = (line: string): string[] => ["sh", "-c", line];
const stopProcess: Task = { kind: "STOP_PROCESS", spec: { name: process } };
const inspect: Task = { kind: "INSPECT_PROCESS", spec: { name: process }, timeoutSeconds: 5 };

/** bringUp starts members, several at once: each is a sequence of named steps; the last one proves that it works. */
async function bringUp(run: Run, members: Member[]): Promise<void> {
  const { intervalSeconds } = (run.dispatch.instance.config ?? {}) as { intervalSeconds?: number };
  const steps: [string, Task][] = [
    ["script", { kind: "WRITE_FILE", spec: { path: `${folder}/worker.sh`, mode: "0755", content: script, makeDirs: true } }],
    ["start", { kind: "START_PROCESS", spec: {
      name: process, command: shell(`exec sh "$GPUAAS_MEMBER_ROOT${folder}/worker.sh"`), env: [{ name: "INTERVAL", value: String(intervalSeconds ?? 1) }],
      restart: { policy: "on_failure", maxRestarts: 5, backoffSeconds: 1 }, stopTimeoutSeconds: 5,
    } }],
    ["proof", { kind: "PROBE", spec: { exec: { command: shell(`test -s "$GPUAAS_MEMBER_ROOT${folder}/beats"`) }, attempts: 60, intervalSeconds: 0.5, timeoutSeconds: 5 } }],
  ];
  await run.each(members, async (member) => {
    run.member(member.id, "joining", "unknown");
    for (const [step, task] of steps) await run.do(member, step, task);
    run.member(member.id, "active", "healthy");
  });
}

/** stop stops members. One that does not run is stopped already. */
async function stop(run: Run, members: Member[], signal: AbortSignal = run.signal): Promise<void> {
  await run.each(members, async (member) => { await run.try(member, "stop", stopProcess, signal); });
}

/** create brings every member up. After a kill it is called again: finished steps answer at once. */
async function create(run: Run): Promise<void> {
  run.progress("starting", 10, `starting ${run.dispatch.members.length} workers`);
  await bringUp(run, run.dispatch.members);
  run.evidence("workers", run.dispatch.members.length);
}

/** add brings the targets up; when that fails nothing of them stays. */
async function add(run: Run): Promise<void> {
  try {
    await bringUp(run, run.targets());
  } catch (error) {
    await run.cleanup(async (signal) => {
      await stop(run, run.targets(), signal);
      for (const member of run.targets()) run.member(member.id, "failed", "unknown");
    });
    throw error;
  }
  run.evidence("added", run.targets().length);
}

/** recover brings failed members up again, on the files that they have. */
async function recover(run: Run): Promise<void> {
  await bringUp(run, run.targets());
  run.evidence("recovered", run.targets().length);
}

/** decommission stops the members and has their nodes prove that nothing is left. It works on an instance that never
 * came up, too. */
async function decommission(run: Run): Promise<void> {
  run.progress("stopping", 10, `stopping ${run.dispatch.members.length} workers`);
  if (!run.force) await stop(run, run.dispatch.members);
  await run.teardown(run.dispatch.members);
}

/** check refuses what cannot be done safely, before anything is done. */
function check(asked: Asked): void {
  const known = new Map(manifest.components.map((c) => [c.key, c]));
  asked.members.forEach((m, n) => {
    if (!known.has(m.componentKey)) throw refuse("UNKNOWN_COMPONENT", `members[${n}].componentKey`, `no component is called ${JSON.stringify(m.componentKey)}`);
  });
  asked.instance.components.forEach(({ key, count }, n) => {
    const bounds = known.get(key);
    if (bounds === undefined) throw refuse("UNKNOWN_COMPONENT", `instance.components[${n}].key`, `no component is called ${JSON.stringify(key)}`);
    if (asked.kind === "instance.decommission") return;
    if (count < bounds.min) throw refuse("BELOW_MINIMUM", `instance.components[${n}].count`, `${count} would be left, and ${bounds.min} are needed`);
    if (count > bounds.max) throw refuse("ABOVE_MAXIMUM", `instance.components[${n}].count`, `${count} are more than ${bounds.max}`);
  });
}

/** observe says how the members are right now. One whose node does not answer is unknown, never good. */
async function observe(call: Call): Promise<{ health: Health; message: string; members: MemberObservation[] }> {
  const members = await Promise.all(call.members.map(async (member): Promise<MemberObservation> => {
    try {
      const result = await call.ask(member, "inspect", inspect, AbortSignal.timeout(5000));
      const state = (result.result?.["process"] as { state?: string } | undefined)?.state;
      if (state !== undefined) return { id: member.id, health: state === "running" ? "healthy" : "unhealthy", message: `its process is ${state}` };
    } catch {
      call.signal.throwIfAborted();
    }
    return { id: member.id, health: "unknown", message: "its node did not answer" };
  }));
  const healthy = members.filter((m) => m.health === "healthy").length;
  const unknown = members.some((m) => m.health === "unknown");
  const health = healthy > 0 && healthy === members.length ? "healthy" : healthy > 0 ? "degraded" : unknown ? "unknown" : "unhealthy";
  return { health, message: `${healthy} of ${members.length} workers run`, members };
}

/** read is the last beats of every member. */
async function read(call: Call, request: ActionRequest): Promise<object> {
  const { limit } = request.input as { limit?: number };
  const tail: Task = { kind: "RUN", spec: { command: shell(`tail -n ${limit ?? 1} "$GPUAAS_MEMBER_ROOT${folder}/beats"`) } };
  const results = await Promise.all(call.members.map((member) => call.ask(member, "tail", tail)));
  return { beats: results.flatMap((result) => (result.stdout ?? "").split("\n").filter((line) => line !== "")) };
}

/** plan says that nothing is known: write what an operation would lose, and say safe where it is. */
async function plan(_call: Call, _asked: Asked): Promise<PlanAnswer> {
  const message = "this adapter does not know what would be lost";
  return { verdict: "unknown", reversible: false, reasons: [{ code: "NOT_PLANNED", message }], workLost: [], workTotal: 0, message };
}

const operations: App["operations"] = {
  "instance.create": create, "members.add": add, "member.recover": recover, "instance.decommission": decommission,
};

/** app is the app with a function for everything it can do. The folder is its own, and outlives restarts. */
export function app(_folder: string): App {
  const actions = manifest.actions.map((action) => ({ ...action, do: read }));
  return {
    info: {
      slug: manifest.app, components: manifest.components, operations: Object.keys(operations).sort() as Kind[], configSchema: manifest.configSchema,
      actions: manifest.actions, usageDimensions: [],
    },
    check, operations, actions, observe, plan,
    usage: async (_call, after) => ({ cursor: after, records: [] }),
    pastUsage: () => undefined,
  };
}
