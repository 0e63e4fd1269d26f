// The change feed: the newest status of every operation, each with the version of its last change.
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import { ended, malformed, maxBody, maxPage, sizeOf, type OperationsPage, type Status } from "./contract.js";
import { replaceFile } from "./files.js";

const block = 1 << 16; // versions that are reserved by one write
const maxPageBytes = maxBody - (64 << 10);

interface Item { version: number; status: Status }

/** Feed uses no version twice, not even after a kill: its counter starts above a ceiling on disk that is raised in
 * blocks. So a cursor outlives a restart. */
export class Feed {
  private readonly items = new Map<string, Item>();
  private waiters = new Set<() => void>();
  private readonly epoch: string;
  private next: number;
  private ceiling: number;

  constructor(private readonly dir: string) {
    this.epoch = this.stored("epoch", () => randomBytes(12).toString("hex"));
    this.ceiling = Number(this.stored("ceiling", () => "0"));
    this.next = this.ceiling;
  }

  private stored(name: string, make: () => string): string {
    const file = path.join(this.dir, name);
    if (!fs.existsSync(file)) replaceFile(file, make());
    return fs.readFileSync(file, "utf8");
  }

  /** version takes the next version; a terminal status is journalled with it before it is put. */
  version(): number {
    if (this.next + block / 2 >= this.ceiling) this.reserve();
    return ++this.next;
  }

  /** A disk that refuses the next block is an error once the last block is used up. */
  private reserve(): void {
    try {
      replaceFile(path.join(this.dir, "ceiling"), String(this.next + block));
      this.ceiling = this.next + block;
    } catch (error) {
      if (this.next + 1 >= this.ceiling) throw error;
    }
  }

  put(status: Status, version: number): void {
    this.items.set(status.operationId, { version, status });
    const waiting = this.waiters;
    this.waiters = new Set();
    for (const wake of waiting) wake();
  }

  /** get returns the newest status of an operation. */
  get(id: string): Status | undefined { return this.items.get(id)?.status; }
  drop(id: string): void { this.items.delete(id); }

  /** wait returns the page after a cursor, as soon as it is not empty or when the time has expired. */
  async wait(cursor: string, seconds: number, signal: AbortSignal): Promise<OperationsPage> {
    const end = Date.now() + seconds * 1000;
    for (;;) {
      const { page, same } = this.page(cursor);
      const left = end - Date.now();
      if (page.operations.length > 0 || !same || left <= 0 || signal.aborted) return page;
      await this.change(left, signal);
    }
  }

  private change(milliseconds: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.waiters.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, milliseconds);
      this.waiters.add(done);
      signal.addEventListener("abort", done);
    });
  }

  private page(cursor: string): { page: OperationsPage; same: boolean } {
    const { after, same } = this.parse(cursor);
    const list = [...this.items.values()]
      .filter((item) => item.version > after && (same || !ended(item.status.state)));
    list.sort((a, b) => a.version - b.version);
    const page: OperationsPage = { epoch: this.epoch, cursor: "", operations: [] };
    let last = after;
    let size = 0;
    for (const item of list) {
      size += sizeOf(item.status);
      if (page.operations.length === maxPage || (page.operations.length > 0 && size > maxPageBytes)) break;
      page.operations.push(item.status);
      last = item.version;
    }
    const whole = page.operations.length === list.length;
    // A foreign cursor's page omits ended operations; only one that has all others moves the cursor past them.
    if (whole && !same) last = this.next;
    page.cursor = `${this.epoch}:${last}${same || whole ? "" : "!"}`;
    return { page, same };
  }

  /** Cursors are EPOCH:VERSION. One ending in "!" continues a first page that did not contain everything. */
  private parse(cursor: string): { after: number; same: boolean } {
    if (cursor === "") return { after: 0, same: false };
    const found = /^([0-9a-z]{1,64}):([0-9]{1,15})(!?)$/i.exec(cursor);
    if (found === null) throw malformed("after", "is not a cursor of this feed");
    const after = Number(found[2]);
    if (found[1] !== this.epoch || after > this.next) return { after: 0, same: false };
    return { after, same: found[3] === "" };
  }
}
