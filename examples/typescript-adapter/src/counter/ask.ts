// Observation, plans and actions: what only looks, or is done at once.
import type { AppAction, Call } from "../kit/app.js";
import {
  Failure, maxWork, reachable, refuse, targetsOf, type ActionRequest, type Asked, type Health, type Member, type MemberObservation,
  type PlanAnswer, type Work,
} from "../kit/contract.js";
import type { Task, TaskResult } from "../kit/platform.js";
import { askTime, inspect, judge, name, oldest, quick, succeeded, verb, within, workOf } from "./node.js";
import { serving } from "./upgrade.js";

/** tryAsk asks one member for at most askTime; undefined when it did not answer. */
export async function tryAsk(call: Call, member: Member, step: string, task: Task): Promise<TaskResult | undefined> {
  if (!reachable(member)) return undefined;
  try {
    const result = await call.ask(member, step, within(task, askTime), AbortSignal.timeout(askTime * 1000));
    return succeeded(result) ? result : undefined;
  } catch {
    call.signal.throwIfAborted();
    return undefined;
  }
}

export async function observe(call: Call): Promise<{ health: Health; message: string; members: MemberObservation[] }> {
  const members = await Promise.all(call.members.map(async (member) => {
    const result = await tryAsk(call, member, "inspect", inspect);
    return { id: member.id, ...(result === undefined ? { health: "unknown" as const, message: "its node did not answer" } : judge(result)) };
  }));
  const count = (health: Health): number => members.filter((m) => m.health === health).length;
  const message = `${count("healthy")} of ${members.length} counters run, ${count("unknown")} cannot be asked`;
  return { health: whole(members.length, count("healthy"), count("unknown")), message, members };
}

/** whole is unknown as long as it may be better or worse than it looks. */
function whole(all: number, healthy: number, unknown: number): Health {
  if (all > 0 && healthy === all) return "healthy";
  if (healthy > 0) return "degraded";
  return unknown > 0 ? "unknown" : "unhealthy";
}

interface Heard { member: Member; work: Work[]; heard: boolean }

async function batches(call: Call, members: Member[]): Promise<Heard[]> {
  return Promise.all(members.map(async (member) => {
    const result = await tryAsk(call, member, "list", verb("list"));
    return { member, heard: result !== undefined, work: workOf(member, result?.stdout ?? "") };
  }));
}

/** plan counts only work that would really be lost: a drain waits for it, a change of version leaves it alone. */
export async function plan(call: Call, asked: Asked): Promise<PlanAnswer> {
  const safe: PlanAnswer = { verdict: "safe", reversible: true, reasons: [], workLost: [], workTotal: 0, message: "nothing that runs is touched" };
  const force = asked.force === true;
  switch (asked.kind) {
    case "instance.decommission": return leaving(await batches(call, call.members), true, false);
    case "member.remove":
    case "member.replace": return leaving(await batches(call, targetsOf(asked)), force, false);
    case "member.drain": return leaving(await batches(call, targetsOf(asked)), force, true);
    case "instance.upgrade":
    case "instance.rollback": return changing(await batches(call, serving(call.members)), safe);
    default: return safe;
  }
}

function leaving(answers: Heard[], now: boolean, reversible: boolean): PlanAnswer {
  const work = answers.flatMap((a) => a.work);
  const silent = answers.filter((a) => !a.heard).map((a) => name(a.member)).sort();
  const plan: PlanAnswer = { verdict: "safe", reversible, reasons: [], workLost: [], workTotal: 0, message: "nothing runs there" };
  if (work.length > 0 && now) {
    Object.assign(plan, { verdict: "unsafe", workLost: oldest(work, maxWork), workTotal: work.length, message: `${work.length} batches would be lost` });
    plan.reasons.push({ code: "WORK_LOST", message: plan.message });
  } else if (work.length > 0) {
    plan.message = `it waits for ${work.length} batches to end`;
    plan.reasons.push({ code: "WORK_AWAITED", message: plan.message });
  }
  if (silent.length > 0) {
    if (plan.verdict === "safe") plan.verdict = "unknown";
    plan.reasons.push({ code: "NODE_UNREACHABLE", message: `what these do cannot be asked: ${silent.join(", ")}`, path: "members" });
  }
  return plan;
}

function changing(answers: Heard[], safe: PlanAnswer): PlanAnswer {
  const away = answers.filter((a) => !a.heard);
  const message = "counters are started again one at a time; batches go on meanwhile";
  if (away.length === 0) return { ...safe, message };
  const reasons = away.map((a) => ({ code: "NODE_UNREACHABLE", message: `the node of ${name(a.member)} does not answer`, path: "members" }));
  return { ...safe, verdict: "unsafe", reasons, message: "it would stop at a counter that cannot be reached" };
}

function must(result: TaskResult, member: Member): string {
  if (!succeeded(result)) throw new Failure("NODE_TASK_FAILED", "node", true, `${name(member)}: ${result.message}`);
  return (result.stdout ?? "").trim();
}

async function read(call: Call): Promise<object> {
  const counters = await Promise.all(call.members.map(async (member) => {
    const value = must(await call.ask(member, "total", within(verb("total"), quick)), member);
    return { counter: name(member), value: Number(value === "" ? "0" : value) };
  }));
  return { total: counters.reduce((sum, c) => sum + c.value, 0), counters };
}

async function addTo(call: Call, request: ActionRequest): Promise<object> {
  const { amount } = request.input as { amount: number };
  const member = [...call.members].sort((a, b) => a.index - b.index)[0];
  if (member === undefined) throw refuse("NO_COUNTER", "input", "the instance has no counter");
  return { counter: name(member), value: Number(must(await call.ask(member, "add", within(verb("add", String(amount)), quick)), member)) };
}

/** begin starts a batch on the first counter that takes one. The counters decide themselves, so that a repeat of the
 * action finds the same one. */
async function begin(call: Call, request: ActionRequest): Promise<object> {
  const { seconds, counter } = request.input as { seconds: number; counter?: string };
  const owner = request.requester.id.replace(/[^A-Za-z0-9_-]/g, "_");
  const asked = [...call.members].sort((a, b) => a.index - b.index).filter((m) => counter === undefined || counter === name(m) || counter === m.id);
  if (asked.length === 0) throw refuse("NO_SUCH_COUNTER", "input.counter", `no counter is called ${JSON.stringify(counter)}`);
  for (const member of asked.filter(reachable)) {
    const result = await call.ask(member, "begin", within(verb("begin", String(seconds), owner), quick));
    const id = (result.stdout ?? "").trim();
    if (succeeded(result) && id !== "") return { id, counter: name(member), memberId: member.id };
    if (!succeeded(result) && result.exitCode !== 3) must(result, member);
  }
  throw refuse("NO_COUNTER_AVAILABLE", "input.counter", "no counter takes a new batch now");
}

const text = { type: "string" } as const;
const integer = { type: "integer" } as const;
const counterValue = { type: "object", additionalProperties: false, required: ["counter", "value"], properties: { counter: text, value: integer } } as const;

export const actions: AppAction[] = [
  {
    name: "counter.read", displayName: "Read the counters", permissionKey: "apps.queue.read", risk: "read", do: read,
    inputSchema: { type: "object", additionalProperties: false, properties: {} },
    outputSchema: { type: "object", additionalProperties: false, required: ["total", "counters"], properties: { total: integer, counters: { type: "array", items: counterValue } } },
  },
  {
    name: "counter.add", displayName: "Add to the first counter", permissionKey: "apps.queue.submit", risk: "write", do: addTo,
    inputSchema: {
      type: "object", additionalProperties: false, required: ["amount"],
      properties: { amount: { type: "integer", title: "Amount", description: "How much to add.", minimum: 1, maximum: 1_000_000 } },
    },
    outputSchema: counterValue,
  },
  {
    name: "counter.batch", displayName: "Start a batch", permissionKey: "apps.queue.submit", risk: "write", do: begin,
    inputSchema: {
      type: "object", additionalProperties: false, required: ["seconds"],
      properties: {
        seconds: { type: "integer", title: "Seconds", description: "How long it runs.", minimum: 1, maximum: 86_400 },
        counter: { type: "string", title: "Counter", description: "Its name or member id; left out, the first that takes one.", minLength: 1, maxLength: 100 },
      },
    },
    outputSchema: { type: "object", additionalProperties: false, required: ["id", "counter", "memberId"], properties: { id: text, counter: text, memberId: text } },
  },
];
