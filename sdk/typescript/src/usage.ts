// A durable list of usage records, for adapters that count usage while they act. A record is on disk before it is
// answered, and its id makes it unique: a record that is added again is not counted again.
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import { maxUsageRecords, type UsagePage, type UsageRecord } from "./contract.js";
import { Lines } from "./files.js";
import { idPattern } from "./validate.js";

interface Book { epoch: string; lines: Lines; records: UsageRecord[]; ids: Set<string> }

/** UsageLog keeps the records of instances in a folder, one file for each; its first line is the epoch. */
export class UsageLog {
  private readonly books = new Map<string, Book>();
  private readonly readAt = new Map<string, number>();

  constructor(private readonly folder: string) { fs.mkdirSync(folder, { recursive: true, mode: 0o700 }); }

  private book(instance: string): Book {
    const held = this.books.get(instance);
    if (held !== undefined) return held;
    if (!idPattern.test(instance)) throw new Error(`${JSON.stringify(instance)} is not an instance's id`);
    const lines = new Lines(path.join(this.folder, `${instance}.usage`));
    let [epoch, ...records] = lines.read<string | UsageRecord>();
    if (epoch === undefined) lines.append(epoch = randomBytes(4).toString("hex"), true);
    const known = records as UsageRecord[];
    const book = { epoch: epoch as string, lines, records: known, ids: new Set(known.map((r) => r.id)) };
    this.books.set(instance, book);
    return book;
  }

  /** add writes records that are not in the log yet; they are on disk when it returns. */
  add(instance: string, ...records: UsageRecord[]): void {
    const book = this.book(instance);
    for (const record of records.filter((r) => !book.ids.has(r.id))) {
      book.lines.append(record, true);
      book.records.push(record);
      book.ids.add(record.id);
    }
  }

  /** due reports whether an instance's counters are due to be read, and records that they are read now. */
  due(instance: string, seconds = 10): boolean {
    const now = performance.now();
    if (now - (this.readAt.get(instance) ?? -Infinity) < 1000 * seconds) return false;
    this.readAt.set(instance, now);
    return true;
  }

  /** count adds the counter's increase since its last reading. source names one life of the counter, such as a process
   * that counts from 0. The record's id consists of source and total, so the same reading is the same record, and the
   * counter's last reading is found again after a kill. */
  count(instance: string, memberId: string, dimension: string, source: string, total: number): void {
    const now = new Date().toISOString();
    const last = this.book(instance).records.findLast((r) => r.id.slice(0, r.id.lastIndexOf(".")) === source);
    const before = last === undefined ? 0 : Number(last.id.slice(source.length + 1));
    if (total <= before) return;
    const quantity = String(total - before);
    this.add(instance, { id: `${source}.${total}`, dimension, memberId, quantity, from: last?.to ?? now, to: now });
  }

  /** records returns all records of an instance, in the order in which they were added. */
  records(instance: string): UsageRecord[] { return [...this.book(instance).records]; }

  /** page returns the records after a cursor. A cursor of another log, or an empty one, begins at the start. */
  page(instance: string, after: string): UsagePage {
    const { epoch, records } = this.book(instance);
    const found = /^([0-9a-f]{8})\.([0-9]{1,15})$/.exec(after);
    const begin = found?.[1] === epoch ? Math.min(Number(found[2]), records.length) : 0;
    const end = Math.min(begin + maxUsageRecords, records.length);
    return { cursor: `${epoch}.${end}`, count: end, records: records.slice(begin, end) };
  }
}
