// Usage: what each counter counted since its last reading.
import type { Call, Member, Run, UsageLog } from "./kit/index.js";
import { verb } from "./node.js";

/** read reads one counter; what a counter that does not answer counted last stays unread. A counter that counts from 0
 * again is another life of it. */
export async function read(log: UsageLog, instance: string, member: Member, asker: Run | Call): Promise<void> {
  const result = await asker.ask(member, "meter", verb("total"));
  const total = Number(result?.stdout.trim() || Number.NaN);
  if (!Number.isSafeInteger(total)) return;
  const own = log.records(instance).filter((r) => r.memberId === member.id);
  const life = Math.max(0, ...own.map((r) => Number(r.id.split(".").at(-2))));
  const last = Number(own.at(-1)?.id.split(".").at(-1) ?? 0);
  log.count(instance, member.id, "counts", `${member.id}.${total < last ? life + 1 : life}`, total);
}
