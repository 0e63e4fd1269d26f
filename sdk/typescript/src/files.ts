// Files that survive a kill: written whole or not at all, and on disk when the call returns.
import * as fs from "node:fs";
import * as path from "node:path";

export function syncDir(dir: string): void {
  const handle = fs.openSync(dir, "r");
  try {
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
}

/** replaceFile leaves either the old or the new content. */
export function replaceFile(file: string, content: string): void {
  const temporary = `${file}.new`;
  writeAndSync(temporary, content, "w", true);
  fs.renameSync(temporary, file);
  syncDir(path.dirname(file));
}

/** appendFile adds a line; a durable one is on disk before it returns. */
export function appendFile(file: string, line: string, durable: boolean): void {
  const fresh = !fs.existsSync(file);
  writeAndSync(file, `${line}\n`, "a", durable);
  if (durable && fresh) syncDir(path.dirname(file));
}

/** appendLater is a durable appendFile to a file that exists, off the main thread. */
export async function appendLater(file: string, line: string): Promise<void> {
  const handle = await fs.promises.open(file, "a", 0o600);
  try {
    await handle.write(`${line}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function writeAndSync(file: string, content: string, flags: string, durable: boolean): void {
  const handle = fs.openSync(file, flags, 0o600);
  try {
    fs.writeSync(handle, content);
    if (durable) fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
}

/** readLines parses a file of JSON lines and cuts off a last line that a kill has torn. */
export function readLines<T>(file: string): T[] {
  if (!fs.existsSync(file)) return [];
  const raw = fs.readFileSync(file);
  const whole = raw.lastIndexOf(0x0a) + 1;
  if (whole < raw.length) fs.truncateSync(file, whole);
  const text = raw.subarray(0, whole).toString();
  return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as T);
}

/** lock refuses a directory that another live process uses. The lock of a killed process is taken over. */
export function lock(dir: string): void {
  fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
  const file = path.join(dir, "lock");
  const holder = fs.existsSync(file) ? Number(fs.readFileSync(file, "utf8")) : 0;
  if (holder > 0 && holder !== process.pid && alive(holder)) throw new Error(`${dir} is in use by process ${holder}`);
  replaceFile(file, String(process.pid));
}

/** A process id that was given to another program since is told from ours by its name. */
function alive(pid: number): boolean {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("main.js");
  } catch {
    return false;
  }
}
