// __NAME__: each member is a process that writes down, every few seconds, that it is alive. Change it.
import * as fs from "node:fs";
import { App, checkCounts, observeMembers, shell, tasks, type Call, type Member, type Run } from "./kit/index.js";

export const manifest = fs.readFileSync(new URL("../../manifest.json", import.meta.url), "utf8");
const folder = "/srv/__NAME__";
const process = "worker";

// What runs in a member. GPUAAS_MEMBER_ROOT is empty where the member has a file system of its own.
const script = `dir="\${GPUAAS_MEMBER_ROOT:-}${folder}"
while :; do
    date -u +%Y-%m-%dT%H:%M:%SZ >> "$dir/beats"
    sleep "$INTERVAL" & wait $!
done
`;

/** bringUp starts members, several at once: each is a sequence of named steps; the last one proves that it works. */
async function bringUp(run: Run, members: Member[]): Promise<void> {
  const INTERVAL = String(run.config["intervalSeconds"] ?? 1);
  const start = tasks.startProcess(process, shell(`exec sh "$GPUAAS_MEMBER_ROOT${folder}/worker.sh"`), {
    env: { INTERVAL }, restart: "on_failure", maxRestarts: 5, stopSeconds: 5,
  });
  const proof = shell(`test -s "$GPUAAS_MEMBER_ROOT${folder}/beats"`);
  await run.each(members, async (member) => {
    run.member(member.id, "joining", "unknown");
    await run.do(member, "script", tasks.writeFile(`${folder}/worker.sh`, { content: script, mode: "0755" }));
    await run.do(member, "start", start);
    await run.do(member, "proof", tasks.probe({ command: proof, attempts: 60, interval: 0.5 }));
    run.member(member.id, "active", "healthy");
  });
}

/** stop stops members. One that does not run is stopped already. */
async function stop(run: Run, members: Member[]): Promise<void> {
  await run.each(members, async (member) => { await run.attempt(member, "stop", tasks.stopProcess(process)); });
}

/** create brings every member up. After a kill it is called again: finished steps answer at once. */
async function create(run: Run): Promise<void> {
  run.progress("starting", 10, `starting ${run.members.length} workers`);
  await bringUp(run, run.members);
  run.evidence("workers", run.members.length);
}

/** add brings the targets up; when that fails nothing of them stays. */
async function add(run: Run): Promise<void> {
  const forget = async (): Promise<void> => {
    await stop(run, run.targets);
    for (const member of run.targets) run.member(member.id, "failed", "unknown");
  };
  await run.undoing(forget, () => bringUp(run, run.targets));
  run.evidence("added", run.targets.length);
}

/** recover brings failed members up again, on the files that they have. */
async function recover(run: Run): Promise<void> {
  await bringUp(run, run.targets);
  run.evidence("recovered", run.targets.length);
}

/** decommission stops the members and has their nodes prove that nothing is left. It works on an instance that never
 * came up, too. */
async function decommission(run: Run): Promise<void> {
  run.progress("stopping", 10, `stopping ${run.members.length} workers`);
  if (!run.force) await stop(run, run.members);
  await run.teardown(run.members);
}

/** read is the last beats of every member. */
async function read(call: Call): Promise<object> {
  const tail = tasks.run(shell(`tail -n ${String(call.input()["limit"] ?? 1)} "$GPUAAS_MEMBER_ROOT${folder}/beats"`));
  const results = await Promise.all(call.of("worker").map((member) => call.do(member, "tail", tail)));
  return { beats: results.flatMap(({ stdout }) => stdout.split("\n").filter((line) => line !== "")) };
}

/** app is the app with a function for everything it can do. The folder is its own, and outlives restarts. Write a plan
 * function too: without one the platform cannot say what an operation would lose. */
export function app(_folder: string): App {
  const own: App = App.fromManifest(manifest, {
    operations: {
      "instance.create": create, "members.add": add, "member.recover": recover, "instance.decommission": decommission,
    },
    actions: { "__NAME__.read": read },
    check: (asked) => checkCounts(own.components, asked), // refuses what cannot be done safely
    observe: (call) => observeMembers(call, "workers run", async (member) => {
      const seen = await call.ask(member, "inspect", tasks.inspectProcess(process));
      if (seen === undefined || seen.process === "") return ["unknown", "its node did not answer"];
      return seen.process === "running" ? ["healthy", "it beats"] : ["unhealthy", `its process is ${seen.process}`];
    }),
  });
  return own;
}
