// Usage: what each counter counted since it was read last. A reading is on disk before it is answered, under an id that
// is never given again, so that a reader who crashed may ask again and counts nothing twice.
import * as fs from "node:fs";
import * as path from "node:path";
import type { Call } from "../kit/app.js";
import { malformed, maxUsageRecords, type Member, type UsagePage, type UsageRecord } from "../kit/contract.js";
import { appendFile, readLines } from "../kit/files.js";
import type { Run } from "../kit/run.js";
import { tryAsk } from "./ask.js";
import { quick, succeeded, verb, within } from "./node.js";

const pauseBetween = 10_000; // milliseconds between two readings of an instance

/** Reading is a record with what it was made from. */
interface Reading extends UsageRecord { seq: number; memberId: string; total: number }

export class Meter {
  private readonly readings = new Map<string, Reading[]>();
  private readonly busy = new Map<string, Promise<void>>();
  private readonly readAt = new Map<string, number>();

  constructor(private readonly dir: string) { fs.mkdirSync(dir, { recursive: true, mode: 0o700 }); }

  private file(instanceId: string): string { return path.join(this.dir, `${instanceId}.jsonl`); }

  private of(instanceId: string): Reading[] {
    let list = this.readings.get(instanceId);
    if (list === undefined) {
      list = readLines<Reading>(this.file(instanceId));
      this.readings.set(instanceId, list);
    }
    return list;
  }

  async usage(call: Call, after: string): Promise<UsagePage> {
    const id = call.instance.id;
    const from = cursorOf(after);
    await this.once(id, async () => {
      if (Date.now() - (this.readAt.get(id) ?? 0) < pauseBetween) return;
      this.readAt.set(id, Date.now());
      const totals = await Promise.all(call.members.map(async (m) => [m, (await tryAsk(call, m, "meter", verb("total")))?.stdout] as const));
      this.store(id, totals);
    });
    return this.page(id, from);
  }

  past(instanceId: string, after: string): UsagePage | undefined {
    return fs.existsSync(this.file(instanceId)) ? this.page(instanceId, cursorOf(after)) : undefined;
  }

  /** last reads members before they go; one that does not answer has its last stretch unread. */
  async last(run: Run, members: Member[]): Promise<void> {
    await this.once(run.dispatch.instance.id, async () => {
      const totals = await Promise.all(members.map(async (m) => [m, await this.total(run, m)] as const));
      this.store(run.dispatch.instance.id, totals);
    });
  }

  private async total(run: Run, member: Member): Promise<string | undefined> {
    try {
      const result = await run.look(member, "meter", within(verb("total"), quick), AbortSignal.any([run.signal, AbortSignal.timeout(quick * 1000)]));
      return succeeded(result) ? result.stdout : undefined;
    } catch {
      run.signal.throwIfAborted();
      return undefined;
    }
  }

  /** once lets one reading of an instance happen at a time. */
  private once(id: string, work: () => Promise<void>): Promise<void> {
    const next = (this.busy.get(id) ?? Promise.resolve()).catch(() => undefined).then(work);
    this.busy.set(id, next);
    return next.finally(() => { if (this.busy.get(id) === next) this.busy.delete(id); });
  }

  private store(instanceId: string, totals: (readonly [Member, string | undefined])[]): void {
    const list = this.of(instanceId);
    const now = new Date().toISOString();
    for (const [member, text] of totals) {
      const total = Number(text?.trim() || Number.NaN);
      const before = list.findLast((r) => r.memberId === member.id);
      // A counter that was started from nothing counts from nothing.
      const counted = total - (before !== undefined && before.total <= total ? before.total : 0);
      if (!Number.isSafeInteger(total) || (counted === 0 && before !== undefined)) continue;
      const seq = (list.at(-1)?.seq ?? 0) + 1;
      const reading = { id: `${instanceId}.${seq}`, dimension: "counts", quantity: String(counted), from: before?.to ?? now, to: now, seq, memberId: member.id, total };
      appendFile(this.file(instanceId), JSON.stringify(reading), true);
      list.push(reading);
    }
  }

  private page(instanceId: string, after: number): UsagePage {
    const records = this.of(instanceId).filter((r) => r.seq > after).slice(0, maxUsageRecords);
    return {
      cursor: String(records.at(-1)?.seq ?? after),
      records: records.map(({ id, dimension, quantity, from, to }) => ({ id, dimension, quantity, from, to })),
    };
  }
}

function cursorOf(after: string): number {
  if (!/^[0-9]{0,15}$/.test(after)) throw malformed("after", "is not a cursor of this usage");
  return Number(after);
}
