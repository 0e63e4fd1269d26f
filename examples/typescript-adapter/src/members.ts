// The operations.
import {
  Failure, host, nameOf, reachable, within, type Functions, type Member, type Run, type UsageLog, type Work,
} from "./kit/index.js";
import {
  health, launch, oldest, quick, readLabels, stopProcess, untilIdle, verb, versions, workOf, writeLabels,
} from "./node.js";
import { read } from "./usage.js";

const names = (members: Member[]): string => members.map(nameOf).join(", ");

async function bringUp(run: Run, members: Member[]): Promise<void> {
  const { version, config } = run.instance;
  run.progress("starting", 10, `starting ${names(members)}`);
  await run.each(members, async (member) => {
    run.member(member.id, "joining", "unknown");
    await launch(run, member, "", version, config);
    run.member(member.id, "active", "healthy", detail(member, version));
  });
}

function detail(member: Member, version: string): object {
  return { name: nameOf(member), node: member.node.name, address: host(member), version };
}

/** forget stops the members that a failed add started; the platform cleans the nodes. */
async function forget(run: Run, members: Member[]): Promise<void> {
  await stop(run, members, "forget.stop");
  for (const member of members) run.member(member.id, "failed", "unknown");
}

/** stop stops the members' processes. It goes on after a member that does not stop: that one may never have started. */
async function stop(run: Run, members: Member[], step: string): Promise<void> {
  await run.each(members, async (member) => { await tried(run, member, step, () => run.attempt(member, step, stopProcess)); });
}

/** tried returns what a member answers within a bound; undefined when it does not answer. */
async function tried<T>(run: Run, member: Member, step: string, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await within(2 * quick, work);
  } catch (error) {
    run.signal.throwIfAborted();
    run.log.warn("a member did not answer", { member: member.id, step, error: String(error) });
    return undefined;
  }
}

/** mark is the reason for which this operation keeps a member shut: it opens no member that another has shut. */
const mark = (run: Run): string => `drain-${run.op.id}`;

/** empty lets no new batch in and waits until none is left; with force it ends them instead. */
async function empty(run: Run, members: Member[]): Promise<void> {
  run.progress("shutting", 20, `${names(members)} takes no new batch`);
  for (const member of members) run.member(member.id, "draining", await health(run, member));
  if (run.force) return await abort(run, members);
  const waits = new Map<string, Work[]>();
  await run.each(members, async (member) => {
    await run.do(member, "shut", verb("shut", mark(run)));
    await untilIdle(run, member, (work) => {
      if (work === undefined) return run.progress("waiting", 40, `the node of ${nameOf(member)} does not answer`);
      waits.set(member.id, work);
      const all = [...waits.values()].flat();
      if (all.length > 0) run.progress("waiting", 40, `${all.length} batches still run`);
      run.waitsFor(oldest(all));
    });
  });
  run.evidence("drained", { batchesLeft: 0, counters: members.length, seenAt: new Date().toISOString() });
}

/** abort ends the batches of members; the evidence states what was lost and which members did not answer. */
async function abort(run: Run, members: Member[]): Promise<void> {
  const lost: Work[] = [];
  const silent: string[] = [];
  await run.each(members, async (member) => {
    const result = await tried(run, member, "abort", async () => {
      if (run.force) await run.attempt(member, "shut", verb("shut", mark(run)));
      return (await run.attempt(member, "abort", verb("abort"))).require("abort", member);
    });
    if (result === undefined) silent.push(nameOf(member));
    else lost.push(...workOf(member, result.stdout));
  });
  if (silent.length > 0) run.evidence("notAsked", silent.sort());
  run.evidence("workLost", { total: lost.length, work: oldest(lost).slice(0, 100) });
}

/** reopen lets batches in again after a drain that did not end. */
async function reopen(run: Run, members: Member[]): Promise<void> {
  for (const member of members) {
    const done = await tried(run, member, "reopen", () => run.attempt(member, "reopen", verb("reopen", mark(run))));
    // A member that was out of service before stays out of service.
    const status = member.status === "drained" || member.status === "failed" ? member.status : "active";
    run.member(member.id, status, done?.succeeded === true ? await health(run, member) : "unknown");
  }
}

async function drain(run: Run): Promise<void> {
  await run.undoing(() => reopen(run, run.targets), () => empty(run, run.targets));
  for (const member of run.targets) run.member(member.id, "drained", await health(run, member));
}

async function emptyAndCommit(run: Run, members: Member[]): Promise<void> {
  await run.undoing(() => reopen(run, members), async () => {
    await empty(run, members);
    run.commit();
  });
}

/** leave meters members a last time and takes them off their nodes. This cannot be undone. */
async function leave(run: Run, members: Member[], log: UsageLog): Promise<void> {
  run.progress("leaving", 70, `${names(members)} leaves`);
  await run.each(members.filter((m) => run.reaches(m)), (member) => read(log, run.instance.id, member, run));
  await stop(run, members, "leave.stop");
  await run.teardown(members);
}

/** replace brings the new member in before the old one goes out. */
async function replace(run: Run, log: UsageLog): Promise<void> {
  const fresh = run.members.filter((m) => m.id === run.change["replacementId"]);
  await run.undoing(() => forget(run, fresh), async () => {
    await bringUp(run, fresh);
    await emptyAndCommit(run, run.targets);
  });
  await leave(run, run.targets, log);
}

/** change is an upgrade or a rollback: one member at a time in the order of their numbers, so that the first shows
 * whether it works before another is touched. When it fails or is canceled the changed members are changed back. */
async function change(run: Run): Promise<void> {
  const from = run.change["from"] as { version: string; config?: unknown };
  const { version, config } = run.instance;
  const members = serving(run.of("counter"));
  const changed: Member[] = [];
  const one = async (member: Member, prefix: string, to: string, settings: unknown): Promise<void> => {
    await launch(run, member, prefix, to, settings);
    run.member(member.id, member.status === "drained" ? "drained" : "active", "healthy", detail(member, to));
  };
  const back = async (): Promise<void> => {
    for (const member of changed) {
      run.progress("changing back", 10, `changing ${nameOf(member)} back`);
      await one(member, "back.", from.version, from.config)
        .catch(async () => run.member(member.id, "failed", await health(run, member)));
    }
    if (changed.length > 0) run.evidence("versions", await versions(run, members));
  };
  await run.undoing(back, async () => {
    await allAnswer(run, members);
    for (const [n, member] of members.entries()) {
      run.progress(`changing ${nameOf(member)}`, 10 + (80 * n) / members.length, `changing ${nameOf(member)}`);
      changed.unshift(member);
      await one(member, "", version, config);
    }
  });
  run.evidence("versions", await versions(run, members));
}

async function allAnswer(run: Run, members: Member[]): Promise<void> {
  run.progress("asking the nodes", 5, `asking the nodes of ${members.length} counters`);
  await run.each(members, async (member) => {
    if (reachable(member) && (await health(run, member)) !== "unknown") return;
    const message = `the node of ${nameOf(member)} does not answer; nothing was changed`;
    throw new Failure("NODE_UNREACHABLE", "node", true, message);
  });
}

/** serving leaves out members that failed: they get the new settings when they are recovered. */
export function serving(members: Member[]): Member[] { return members.filter((m) => m.status !== "failed"); }

async function recover(run: Run): Promise<void> {
  const failed = async (): Promise<void> => {
    for (const member of run.targets) run.member(member.id, "failed", await health(run, member));
  };
  await run.undoing(failed, () => bringUp(run, run.targets));
  run.evidence("recovered", run.targets.length);
}

/** label writes the labels where the member's own programs can read them, and reads them back. */
async function label(run: Run): Promise<void> {
  const labels = (run.change["labels"] ?? {}) as object;
  for (const member of run.targets) {
    await run.do(member, "label", writeLabels(labels));
    const { stdout } = await run.do(member, "labels", readLabels);
    if (stdout !== JSON.stringify(labels)) throw new Failure("LABELS_DIFFER", "node", true, `${nameOf(member)} has other labels`);
  }
  run.evidence("labels", labels);
}

/** operations are all that the counter can do; log keeps the usage records. */
export function operations(log: UsageLog): Functions["operations"] {
  return {
    "instance.create": async (run) => {
      await bringUp(run, run.members);
      run.evidence("counters", run.members.length);
    },
    "instance.decommission": async (run) => {
      await abort(run, run.members); // it waits for no batch; the evidence names what was lost
      await leave(run, run.members, log);
    },
    "instance.upgrade": change, "instance.rollback": change,
    "members.add": async (run) => {
      await run.undoing(() => forget(run, run.targets), () => bringUp(run, run.targets));
      run.evidence("added", run.targets.length);
    },
    "member.drain": drain,
    "member.cordon": async (run) => {
      for (const member of run.targets) await run.do(member, "doors", verb("shut", "cordon"));
      run.evidence("cordoned", run.targets.map(nameOf));
    },
    "member.uncordon": async (run) => { // lets batches in again, whatever shut the member: also a drain
      for (const member of run.targets) {
        await run.do(member, "doors", verb("unbolt"));
        if (member.status === "drained") run.member(member.id, "active", await health(run, member));
      }
      run.evidence("uncordoned", run.targets.map(nameOf));
    },
    "member.label": label,
    "member.remove": async (run) => {
      await emptyAndCommit(run, run.targets);
      await leave(run, run.targets, log);
    },
    "member.replace": (run) => replace(run, log), "member.recover": recover,
  };
}
