// Upgrade and rollback: one member at a time in the order of their numbers, so that the first shows whether it works
// before another is touched. Batches go on meanwhile. When it fails or is canceled the changed members are changed back.
import { Failure, host, reachable, type Member } from "../kit/contract.js";
import type { Run } from "../kit/run.js";
import { health, instanceSettings, launch, name, runningVersion, settingsOf, succeeded, type Settings } from "./node.js";

interface Change { from: { version: string; config?: unknown } }

export async function change(run: Run): Promise<void> {
  const { from } = run.dispatch.change as Change;
  const members = serving(run.dispatch.members);
  const changed: Member[] = [];
  try {
    await answering(run, members);
    for (const [n, member] of members.entries()) {
      run.progress(`changing ${name(member)}`, 10 + Math.floor((80 * n) / members.length), `changing ${name(member)}, ${n + 1} of ${members.length}`);
      changed.unshift(member);
      await changeOne(run, member, "", instanceSettings(run.dispatch.instance), run.signal);
    }
  } catch (error) {
    await run.cleanup((signal) => restore(run, changed, settingsOf(from.version, from.config), signal));
    throw error;
  }
  run.evidence("versions", await versions(run, members, run.signal));
}

/** serving leaves out members that failed: they get the new settings when they are recovered. */
export function serving(members: Member[]): Member[] {
  return members.filter((m) => m.status !== "failed").sort((a, b) => a.index - b.index);
}

async function answering(run: Run, members: Member[]): Promise<void> {
  run.progress("asking the nodes", 5, `asking the nodes of ${members.length} counters`);
  await run.each(members, async (member) => {
    if (reachable(member) && (await health(run, member)) !== "unknown") return;
    throw new Failure("NODE_UNREACHABLE", "node", true, `the node of ${name(member)} does not answer; nothing was changed`);
  });
}

async function changeOne(run: Run, member: Member, prefix: string, to: Settings, signal: AbortSignal): Promise<void> {
  await launch(run, member, prefix, to, signal);
  run.member(member.id, member.status === "drained" ? "drained" : "active", "healthy", { name: name(member), node: member.node.name, address: host(member), version: to.version });
}

async function restore(run: Run, changed: Member[], from: Settings, signal: AbortSignal): Promise<void> {
  for (const member of changed) {
    run.progress("changing back", 10, `changing ${name(member)} back`);
    await changeOne(run, member, "back.", from, signal).catch(async () => run.member(member.id, "failed", await health(run, member, signal)));
  }
  if (changed.length > 0) run.evidence("versions", await versions(run, serving(run.dispatch.members), signal));
}

/** versions are what the members themselves say they run. */
async function versions(run: Run, members: Member[], signal: AbortSignal): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const member of members) {
    const result = await run.look(member, "version", runningVersion, signal);
    found[name(member)] = succeeded(result) ? (result.stdout ?? "").trim() : "unknown";
  }
  return found;
}
