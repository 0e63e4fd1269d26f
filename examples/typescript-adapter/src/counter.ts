// The app counter: every member is a process that counts, and runs batches beside it.
import * as fs from "node:fs";
import {
  App, askWork, checkCounts, nameOf, observeMembers, planOfWork, reachable, refuse, UsageLog, type Asked, type Call,
  type Member, type PlanCall, type Planned,
} from "./kit/index.js";
import { operations, serving } from "./members.js";
import { inspect, judge, oldest, verb, workOf } from "./node.js";
import { read } from "./usage.js";

export const manifest = fs.readFileSync(new URL("../../manifest.json", import.meta.url), "utf8");

/** counter is the app, with a folder of its own for the usage records. */
export function counter(folder: string): App {
  const log = new UsageLog(folder);
  const app: App = App.fromManifest(manifest, {
    operations: operations(log), plan,
    check: (asked) => check(app, asked),
    observe: (call) => observeMembers(call, "counters run", async (m) => judge(await call.ask(m, "inspect", inspect))),
    actions: { "counter.read": readAll, "counter.add": addTo, "counter.batch": begin },
    usage: async (call, after) => {
      const { id } = call.instance;
      if (log.due(id)) await call.each(call.members, (member) => read(log, id, member, call));
      return log.page(id, after);
    },
  });
  return app;
}

/** check refuses a change that the app does not support or cannot survive. */
function check(app: App, asked: Asked): void {
  checkCounts(app.components, asked);
  const change = (asked.change ?? {}) as { from?: { version?: unknown }; to?: { version?: unknown }; replacementId?: unknown };
  const dispatched = "operationId" in asked;
  if (dispatched && asked.kind.startsWith("member") && (asked.targets ?? []).length === 0) {
    throw refuse("TARGET_MISSING", "targets", `${asked.kind} needs a member`);
  }
  if (asked.kind === "instance.upgrade" || asked.kind === "instance.rollback") {
    if (typeof change.from?.version !== "string") throw refuse("CHANGE_INVALID", "change.from.version", "is missing");
    if (change.to?.version !== asked.instance.version) {
      throw refuse("VERSION_MISMATCH", "change.to.version", "is not the version of the instance");
    }
  }
  if (dispatched && asked.kind === "member.replace" && !asked.members.some((m) => m.id === change.replacementId)) {
    throw refuse("REPLACEMENT_UNKNOWN", "change.replacementId", "is not one of members");
  }
}

/** plan counts only work that would really be lost: a drain waits for it, a change of version leaves it alone. */
async function plan(call: PlanCall): Promise<Planned> {
  const { kind } = call.asked;
  if (kind === "instance.decommission") return leaving(call, call.members, true, false);
  if (kind === "member.remove" || kind === "member.replace") return leaving(call, call.targets, call.force, false);
  if (kind === "member.drain") return leaving(call, call.targets, call.force, true);
  if (kind !== "instance.upgrade" && kind !== "instance.rollback") {
    return { verdict: "safe", reversible: true, message: "nothing that runs is touched" };
  }
  const { silent } = await batches(call, serving(call.members));
  if (silent.length === 0) {
    return { verdict: "safe", reversible: true, message: "counters are started again one at a time; batches go on" };
  }
  const stopped = planOfWork([], silent.map(nameOf), { lost: true, reversible: true, what: "batches" });
  return { ...stopped, verdict: "unsafe", message: "it would stop at a counter that cannot be reached" };
}

async function leaving(call: PlanCall, members: Member[], lost: boolean, reversible: boolean): Promise<Planned> {
  const { work, silent } = await batches(call, members);
  return planOfWork(oldest(work), silent.map(nameOf).sort(), { lost, reversible, what: "batches" });
}

function batches(call: Call, members: Member[]): ReturnType<typeof askWork> {
  return askWork(members, async (member) => {
    const result = await call.ask(member, "list", verb("list"));
    return result && workOf(member, result.stdout);
  });
}

async function readAll(call: Call): Promise<object> {
  const counters = await Promise.all(call.of("counter").map(async (member) => {
    const { stdout } = await call.do(member, "total", verb("total"));
    return { counter: nameOf(member), value: Number(stdout.trim()) };
  }));
  return { total: counters.reduce((sum, c) => sum + c.value, 0), counters };
}

async function addTo(call: Call): Promise<object> {
  const member = call.of("counter")[0];
  if (member === undefined) throw refuse("NO_COUNTER", "input", "the instance has no counter");
  const { stdout } = await call.do(member, "add", verb("add", String(call.input()["amount"])));
  return { counter: nameOf(member), value: Number(stdout.trim()) };
}

/** begin starts a batch on the first counter that takes one. The counters decide themselves, so that a repeat of the
 * action finds the same one. */
async function begin(call: Call): Promise<object> {
  const { seconds, counter } = call.input<{ seconds: number; counter?: string }>();
  const owner = (call.request?.requester.id ?? "").replace(/[^A-Za-z0-9_-]/g, "_");
  const asked = call.of("counter").filter((m) => counter === undefined || counter === nameOf(m) || counter === m.id);
  if (asked.length === 0) throw refuse("NO_SUCH_COUNTER", "input.counter", `no counter is called ${JSON.stringify(counter)}`);
  for (const member of asked.filter(reachable)) {
    const result = await call.attempt(member, "begin", verb("begin", String(seconds), owner));
    const id = result.stdout.trim();
    if (result.succeeded && id !== "") return { id, counter: nameOf(member), memberId: member.id };
    if (result.exitCode !== 3) result.require("begin", member);
  }
  throw refuse("NO_COUNTER_AVAILABLE", "input.counter", "no counter takes a new batch now");
}
