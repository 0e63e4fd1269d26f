// Files that survive a kill: written whole or not at all, and on disk when the call returns.
import * as fs from "node:fs";
import * as path from "node:path";

function syncDir(dir: string): void {
  const handle = fs.openSync(dir, "r");
  try {
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
}

/** replaceFile leaves either the old or the new content, never a mixture. */
export function replaceFile(file: string, content: string | Uint8Array): void {
  const temporary = `${file}.new`;
  try {
    const handle = fs.openSync(temporary, "w", 0o600);
    try {
      fs.writeFileSync(handle, content);
      fs.fsyncSync(handle);
    } finally {
      fs.closeSync(handle);
    }
    fs.renameSync(temporary, file);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
  syncDir(path.dirname(file));
}

/** Lines is a file of JSON lines. Nothing stays of a line that the disk refused, such as when it is full: its part is
 * cut off, at once or before the next line. */
export class Lines {
  private torn: number | undefined;

  constructor(readonly file: string) {}

  /** append adds a line; a durable one is on disk when the call returns. */
  append(value: unknown, durable: boolean): void {
    const fresh = !fs.existsSync(this.file);
    const handle = fs.openSync(this.file, "a", 0o600);
    try {
      this.mend(handle);
      const start = fs.fstatSync(handle).size;
      try {
        fs.writeFileSync(handle, `${JSON.stringify(value)}\n`);
        if (durable) fs.fsyncSync(handle);
      } catch (error) {
        this.torn = start;
        this.tryMend(handle);
        throw error;
      }
    } finally {
      fs.closeSync(handle);
    }
    if (durable && fresh) syncDir(path.dirname(this.file));
  }

  private mend(handle: number): void {
    if (this.torn === undefined) return;
    fs.ftruncateSync(handle, this.torn);
    this.torn = undefined;
  }

  private tryMend(handle: number): void {
    try {
      this.mend(handle);
    } catch {
      // The next line begins with it.
    }
  }

  /** sync flushes the appended lines to the disk, off the main thread. */
  async sync(): Promise<void> {
    const handle = await fs.promises.open(this.file, "r");
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }

  /** replace leaves one line. */
  replace(value: unknown): void {
    replaceFile(this.file, `${JSON.stringify(value)}\n`);
    this.torn = undefined;
  }

  /** read returns the lines, and cuts off a last one that a kill has torn. */
  read<T>(): T[] {
    if (!fs.existsSync(this.file)) return [];
    const raw = fs.readFileSync(this.file);
    const whole = raw.lastIndexOf(0x0a) + 1;
    if (whole < raw.length) fs.truncateSync(this.file, whole);
    const text = raw.subarray(0, whole).toString();
    return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as T);
  }
}

/** isFull reports whether an error means that the disk is full. */
export function isFull(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === "ENOSPC";
}

const held = new Set<string>();

/** lock refuses a folder that another live process uses, or this one already, and returns a function that frees it. The
 * lock of a killed process is taken over. */
export function lock(dir: string): () => void {
  fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
  const file = path.join(fs.realpathSync(dir), "lock");
  const holder = fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "";
  const [pid = ""] = holder.split(" ");
  const other = Number(pid) !== process.pid && holder !== "" && life(Number(pid)) === holder;
  if (held.has(file) || other) throw new Error(`${dir} is in use by process ${pid}`);
  replaceFile(file, life(process.pid));
  held.add(file);
  return () => {
    held.delete(file);
    fs.rmSync(file, { force: true });
  };
}

/** life names one life of a process: its id, and when it began, because other processes get the same id later. A killed
 * process that is not reaped yet, as in a container without an init, counts as dead. */
function life(pid: number): string {
  if (!(pid > 0)) return "";
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? "" : `${pid} ${fields[19] ?? ""}`;
  } catch {
    return alive(pid) ? `${pid} ` : "";
  }
}

/** alive reports whether a process has this id, where there is no /proc. */
function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
