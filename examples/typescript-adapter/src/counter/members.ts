// The operations on members, and create and decommission.
import { Failure, host, maxWork, reachable, type Member, type MemberStatus, type Work } from "../kit/contract.js";
import { pause } from "../kit/platform.js";
import { isAway, type Run } from "../kit/run.js";
import { health, instanceSettings, launch, name, names, oldest, quick, readLabels, stopProcess, succeeded, verb, within, workOf, writeLabels } from "./node.js";
import type { Meter } from "./usage.js";

const changeTime = 15; // seconds a node watches its batches for a change before it answers
const silence = 2000; // milliseconds after a node that did not answer

export async function create(run: Run): Promise<void> {
  const members = run.dispatch.members;
  run.progress("starting", 10, `starting ${members.length} counters`);
  await bringUp(run, members);
  run.evidence("counters", members.length);
}

async function bringUp(run: Run, members: Member[]): Promise<void> {
  const settings = instanceSettings(run.dispatch.instance);
  await run.each(members, async (member) => {
    run.member(member.id, "joining", "unknown");
    await launch(run, member, "", settings);
    run.member(member.id, "active", "healthy", { name: name(member), node: member.node.name, address: host(member), version: settings.version });
  });
}

export async function add(run: Run): Promise<void> {
  run.progress("starting", 10, `starting ${names(run.targets())}`);
  await bringUp(run, run.targets()).catch((error: unknown) => takeBack(run, run.targets(), error));
  run.evidence("added", run.targets().length);
}

/** takeBack stops what came up of an add; the nodes are the platform's to clean. */
async function takeBack(run: Run, members: Member[], reason: unknown): Promise<never> {
  await run.cleanup(async (signal) => {
    await stop(run, members, "forget.stop", signal);
    for (const member of members) run.member(member.id, "failed", "unknown");
  });
  throw reason;
}

/** stop stops members in good order. One that fails to is no reason not to go on: it may never have come to be. */
async function stop(run: Run, members: Member[], step: string, signal: AbortSignal = run.signal): Promise<void> {
  await run.each(members, async (member) => {
    try {
      await run.try(member, step, stopProcess, AbortSignal.any([signal, AbortSignal.timeout(2 * quick * 1000)]));
    } catch {
      signal.throwIfAborted();
    }
  });
}

export async function drain(run: Run): Promise<void> {
  const members = run.targets();
  await empty(run, members).catch((error: unknown) => reopen(run, members, error));
  for (const member of members) run.member(member.id, "drained", await health(run, member));
}

/** mark is the reason for which this operation keeps a member shut: it does not open what another has shut. */
function mark(run: Run): string { return `drain-${run.op.id}`; }

/** empty lets no new batch in and waits until none is left; with force it ends them instead. */
async function empty(run: Run, members: Member[]): Promise<void> {
  run.progress("shutting", 20, `${names(members)} takes no new batch`);
  for (const member of members) run.member(member.id, "draining", await health(run, member));
  if (run.force) return await abort(run, members);
  const waits = new Map<string, Work[]>();
  await run.each(members, async (member) => {
    await run.do(member, "shut", verb("shut", mark(run)));
    await until(run, member, waits);
  });
  run.evidence("drained", { batchesLeft: 0, counters: members.length, seenAt: new Date().toISOString() });
}

/** until waits until a member has no batch. A node that does not answer may have some: only an answer ends the wait. */
async function until(run: Run, member: Member, waits: Map<string, Work[]>): Promise<void> {
  for (let known = -1; known !== 0;) {
    const result = await run.look(member, "work", verb("change", String(known), String(changeTime)));
    if (!succeeded(result)) {
      run.progress("waiting", 40, `the node of ${name(member)} does not answer: ${result.message}`);
      known = -1;
      await pause(silence, run.signal);
      continue;
    }
    const work = workOf(member, result.stdout ?? "");
    known = work.length;
    waits.set(member.id, work);
    const all = [...waits.values()].flat();
    if (all.length > 0) run.progress("waiting", 40, `${all.length} batches still run`);
    run.waitsFor(oldest(all, maxWork));
  }
}

/** abort ends the batches of members; the evidence says what was lost and who could not be asked. */
async function abort(run: Run, members: Member[]): Promise<void> {
  const lost: Work[] = [];
  const silent: string[] = [];
  await run.each(members, async (member) => {
    const bounded = AbortSignal.any([run.signal, AbortSignal.timeout(2 * quick * 1000)]);
    try {
      if (run.force) await run.try(member, "shut", within(verb("shut", mark(run)), quick), bounded);
      const result = await run.try(member, "abort", within(verb("abort"), quick), bounded);
      if (!succeeded(result)) throw new Failure("NODE_TASK_FAILED", "node", true, result.message);
      lost.push(...workOf(member, result.stdout ?? ""));
    } catch {
      run.signal.throwIfAborted();
      silent.push(name(member));
    }
  });
  if (silent.length > 0) run.evidence("notAsked", silent.sort());
  run.evidence("workLost", { total: lost.length, work: oldest(lost, maxWork) });
}

/** reopen lets batches in again after a drain that did not come to its end. */
async function reopen(run: Run, members: Member[], reason: unknown): Promise<never> {
  await run.cleanup(async (signal) => {
    for (const member of members) {
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(quick * 1000)]);
      const done = await run.try(member, "reopen", within(verb("reopen", mark(run)), quick), bounded).then(succeeded, () => false);
      // One that was out of service before stays so.
      const status: MemberStatus = member.status === "drained" || member.status === "failed" ? member.status : "active";
      run.member(member.id, status, done ? await health(run, member, signal) : "unknown");
    }
  });
  throw reason;
}

export function removing(meter: Meter): (run: Run) => Promise<void> {
  return async (run) => {
    const members = run.targets();
    await emptyAndCommit(run, members).catch((error: unknown) => reopen(run, members, error));
    await leave(run, members, meter);
  };
}

async function emptyAndCommit(run: Run, members: Member[]): Promise<void> {
  await empty(run, members);
  run.commit();
}

/** leave meters members a last time and takes them off their nodes. There is no way back from here. */
async function leave(run: Run, members: Member[], meter: Meter): Promise<void> {
  run.progress("metering", 60, "reading the counters a last time");
  await meter.last(run, members.filter((m) => !run.force || reachable(m)));
  run.progress("leaving", 70, `${names(members)} leaves`);
  await stop(run, members, "leave.stop");
  await run.teardown(members);
}

/** replacing brings the new member in before the old one goes out. */
export function replacing(meter: Meter): (run: Run) => Promise<void> {
  return async (run) => {
    const { replacementId } = run.dispatch.change as { replacementId: string };
    const fresh = run.dispatch.members.filter((m) => m.id === replacementId);
    const old = run.targets();
    run.progress("starting the new counter", 10, `starting ${names(fresh)}`);
    await bringUp(run, fresh).catch((error: unknown) => takeBack(run, fresh, error));
    await emptyAndCommit(run, old).catch((error: unknown) => reopen(run, old, error)).catch((error: unknown) => takeBack(run, fresh, error));
    await leave(run, old, meter);
  };
}

export async function recover(run: Run): Promise<void> {
  const members = run.targets();
  run.progress("starting", 10, `starting ${names(members)} again`);
  try {
    await bringUp(run, members);
  } catch (error) {
    await run.cleanup(async (signal) => {
      for (const member of members) run.member(member.id, "failed", await health(run, member, signal));
    });
    throw error;
  }
  run.evidence("recovered", members.length);
}

export async function cordon(run: Run): Promise<void> {
  for (const member of run.targets()) await run.do(member, "doors", verb("shut", "cordon"));
  run.evidence("cordoned", run.targets().map(name));
}

/** uncordon lets batches in again whatever shut the member, also a drain. */
export async function uncordon(run: Run): Promise<void> {
  for (const member of run.targets()) {
    await run.do(member, "doors", verb("unbolt"));
    if (member.status === "drained") run.member(member.id, "active", await health(run, member));
  }
  run.evidence("uncordoned", run.targets().map(name));
}

/** label writes the labels down where the member's own programs can read them, and reads them back. */
export async function label(run: Run): Promise<void> {
  const labels = (run.dispatch.change as { labels?: object } | null)?.labels ?? {};
  for (const member of run.targets()) {
    await run.do(member, "label", writeLabels(labels));
    const result = await run.do(member, "labels", readLabels);
    if (result.stdout !== JSON.stringify(labels)) throw new Failure("LABELS_DIFFER", "node", true, `${name(member)} has other labels than were written`);
  }
  run.evidence("labels", labels);
}

/** decommissioning waits for no batch; what was lost is said. */
export function decommissioning(meter: Meter): (run: Run) => Promise<void> {
  return async (run) => {
    const members = run.dispatch.members;
    run.progress("ending batches", 10, `ending the batches of ${members.length} counters`);
    await abort(run, members);
    await leave(run, members, meter).catch((error: unknown) => {
      throw isAway(error) ? new Failure("NODE_UNREACHABLE", "node", true, "a node did not answer in time") : error;
    });
  };
}
