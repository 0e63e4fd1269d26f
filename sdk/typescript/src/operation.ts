// Operations and their journal: one file of JSON lines each, which is on disk before anything rests on it.
import * as fs from "node:fs";
import * as path from "node:path";
import { ended, type Dispatch, type Status } from "./contract.js";
import { appendFile, appendLater, readLines, replaceFile } from "./files.js";
import type { Run } from "./run.js";

/** Entry is one line. Only what changed is set; the first holds the dispatch. */
export interface Entry {
  at: number;
  began?: number;
  dispatch?: Dispatch;
  hash?: string;
  /** generation is the attempt with which the run began; a new one forgets steps. */
  generation?: number;
  status?: Status;
  /** version is the feed's, beside a terminal status. */
  version?: number;
  step?: string;
  spec?: object;
  canceled?: boolean;
  committed?: boolean;
}

export class Operation {
  began = 0;
  touched = 0;
  hash = "";
  generation = 0;
  version = 0;
  canceled = false;
  committed = false;
  readonly steps = new Map<string, object>();
  run: Run | undefined;

  constructor(readonly id: string, public dispatch: Dispatch, public status: Status) {}

  apply(entry: Entry): void {
    this.touched = entry.at;
    if (entry.dispatch !== undefined) this.dispatch = entry.dispatch;
    if (entry.hash !== undefined) {
      this.hash = entry.hash;
      this.began = entry.began ?? entry.at;
    }
    if (entry.generation !== undefined) {
      this.generation = entry.generation;
      this.steps.clear();
      this.canceled = this.committed = false;
    }
    if (entry.status !== undefined) this.status = entry.status;
    this.version = entry.version ?? this.version;
    if (entry.step !== undefined) this.steps.set(entry.step, entry.spec ?? {});
    this.canceled ||= entry.canceled === true;
    this.committed ||= entry.committed === true;
  }
}

export class Journal {
  constructor(private readonly dir: string) { fs.mkdirSync(dir, { recursive: true, mode: 0o700 }); }

  private file(id: string): string { return path.join(this.dir, `${id}.jsonl`); }

  append(op: Operation, entry: Entry, durable: boolean): void {
    appendFile(this.file(op.id), JSON.stringify(entry), durable);
    op.apply(entry);
  }

  /** appendStep is append without holding up everything else while the disk is busy. */
  async appendStep(op: Operation, entry: Entry): Promise<void> {
    const generation = op.generation;
    await appendLater(this.file(op.id), JSON.stringify(entry));
    if (op.generation === generation) op.apply(entry);
  }

  /** close rewrites an ended operation's file: steps and the token have served. */
  close(op: Operation, status: Status, version: number): void {
    const dispatch = { ...op.dispatch, platform: { ...op.dispatch.platform, token: "" } };
    const entry: Entry = {
      at: Date.now(), began: op.began, dispatch, hash: op.hash, generation: op.generation, status, version,
      canceled: op.canceled, committed: op.committed,
    };
    replaceFile(this.file(op.id), `${JSON.stringify(entry)}\n`);
    op.apply(entry);
  }

  remove(id: string): void { fs.rmSync(this.file(id), { force: true }); }

  /** load reads all operations, oldest first. A file without a whole first line is of a dispatch that was never
   * answered: it is no operation. */
  load(): Operation[] {
    const found: Operation[] = [];
    for (const name of fs.readdirSync(this.dir)) {
      if (!name.endsWith(".jsonl")) continue;
      const id = name.slice(0, -".jsonl".length);
      const [first, ...rest] = readLines<Entry>(this.file(id));
      if (first?.dispatch === undefined || first.status === undefined) {
        this.remove(id);
        continue;
      }
      const op = new Operation(id, first.dispatch, first.status);
      for (const entry of [first, ...rest]) op.apply(entry);
      found.push(op);
    }
    return found.sort((a, b) => a.began - b.began);
  }
}

export function accepted(d: Dispatch): Status {
  return { operationId: d.operationId, attempt: d.attempt, state: "accepted", phase: "accepted", percent: 0, message: "", members: [] };
}

export function isEnded(op: Operation): boolean { return ended(op.status.state); }
