import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import builtin, * as fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import * as os from "node:os";
import * as path from "node:path";
import { after, test } from "node:test";
import type { Status } from "../src/contract.js";
import { Feed } from "../src/feed.js";
import { Lines, lock } from "../src/files.js";
import { Instances } from "../src/instances.js";
import { Journal } from "../src/operation.js";
import { dispatch } from "./sample.js";

/** folder makes a folder that is deleted when the test that asked for it has ended. */
const folder = (): string => {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), "counter-"));
  after(() => fs.rmSync(made, { recursive: true, force: true }));
  return made;
};
const never = new AbortController().signal;
const status = (id: string, state: Status["state"]): Status => ({ operationId: id, attempt: 1, state, phase: "", percent: 0, message: "", members: [] });

test("a torn last line is cut off, and a file without a whole first line is no operation", () => {
  const dir = folder();
  const journal = new Journal(dir);
  const op = journal.open(dispatch());
  op.record({ dispatch: op.dispatch, hash: "h", generation: 1, status: op.status });
  op.record({ step: "s", spec: { a: 1 } });
  op.record({ saved: { name: "made" } });
  fs.appendFileSync(path.join(dir, "op_1.jsonl"), '{"at":3,"sta');
  fs.writeFileSync(path.join(dir, "op_2.jsonl"), '{"at":1,"dispatch":{');
  const found = new Journal(dir).load();
  assert.deepEqual(found.map((o) => o.id), ["op_1"]);
  assert.deepEqual(found[0]?.steps.get("s"), { a: 1 });
  assert.equal(found[0]?.saved.get("name"), "made");
  assert.equal(new Lines(path.join(dir, "op_1.jsonl")).read().length, 3);
});

test("of a line that the disk did not take nothing stays", (t) => {
  const lines = new Lines(path.join(folder(), "lines"));
  lines.append(1, true);
  const full = Object.assign(new Error("no space left"), { code: "ENOSPC" });
  let free = false;
  for (const name of ["fsyncSync", "ftruncateSync"] as const) {
    const own = builtin[name] as (...args: unknown[]) => void;
    t.mock.method(builtin, name, (...args: unknown[]) => { if (free) own(...args); else throw full; });
  }
  syncBuiltinESMExports();
  assert.throws(() => lines.append(2, true), { code: "ENOSPC" });
  free = true;
  lines.append(3, true);
  assert.deepEqual(lines.read(), [1, 3]);
  t.mock.restoreAll();
  syncBuiltinESMExports();
});

test("a folder has one user", () => {
  const dir = folder();
  const unlock = lock(dir);
  assert.throws(() => lock(dir), /in use/);
  unlock();
  fs.writeFileSync(path.join(dir, "lock"), fs.readFileSync("/proc/1/stat", "utf8").split(" ")[0] + " 0");
  lock(dir)(); // another process has the id by now
  fs.writeFileSync(path.join(dir, "lock"), `1 ${startOf(1)}`);
  assert.throws(() => lock(dir), /in use by process 1/);
});

test("a killed process that no one has reaped locks no folder", async () => {
  // The child ends once its parent is a program that reaps no child: a shell may reap one that ends before.
  const parent = spawn("sh", ["-c", "exec 3<&0; { read go <&3; } & echo $!; exec sleep 60"]);
  const [said] = (await once(parent.stdout, "data")) as [Buffer];
  const pid = Number(said.toString());
  const program = (): string => fs.readFileSync(`/proc/${parent.pid}/comm`, "utf8").trim();
  while (program() !== "sleep") await new Promise(setImmediate);
  parent.stdin.write("go\n");
  const stat = (): string => fs.readFileSync(`/proc/${pid}/stat`, "utf8");
  while (!stat().includes(") Z ")) await new Promise(setImmediate);
  const dir = folder();
  fs.writeFileSync(path.join(dir, "lock"), `${pid} ${startOf(pid)}`);
  lock(dir)();
  parent.kill();
});

const startOf = (pid: number): string => {
  const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
};

test("an ended operation keeps neither token nor steps", () => {
  const dir = folder();
  const op = new Journal(dir).open(dispatch());
  op.record({ dispatch: op.dispatch, hash: "h", generation: 1, status: op.status });
  const { began } = op;
  op.record({ step: "secret-step", spec: {} });
  op.close({ ...op.status, state: "succeeded" }, 9);
  const raw = fs.readFileSync(path.join(dir, "op_1.jsonl"), "utf8");
  assert.ok(!raw.includes("secret-step") && !raw.includes('"token":"t"'));
  assert.equal(fs.statSync(path.join(dir, "op_1.jsonl")).mode & 0o777, 0o600);
  const again = new Journal(dir).load()[0];
  assert.equal(again?.began, began);
  assert.equal(again?.version, 9);
});

test("a tombstone is found by the next process", () => {
  const dir = folder();
  new Journal(dir).bury("op_1", 3);
  assert.equal(new Journal(dir).tombstones().get("op_1")?.attempt, 3);
});

test("the feed waits for a change, and its cursor outlives a restart", async () => {
  const dir = folder();
  const feed = new Feed(dir);
  feed.put(status("op_1", "running"), feed.version());
  const first = await feed.wait("", 5, never);
  assert.equal(first.operations.length, 1);
  const waiting = feed.wait(first.cursor, 20, never);
  feed.put(status("op_1", "succeeded"), feed.version());
  const second = await waiting;
  assert.equal(second.operations[0]?.state, "succeeded");
  assert.equal((await feed.wait(second.cursor, 0, never)).operations.length, 0);
  const later = new Feed(dir);
  later.put(status("op_2", "running"), later.version());
  const third = await later.wait(second.cursor, 0, never);
  assert.deepEqual(third.operations.map((o) => o.operationId), ["op_2"]);
  assert.equal(third.epoch, first.epoch);
});

test("a foreign cursor is answered with all that has not ended, page by page", async () => {
  const feed = new Feed(folder());
  for (let n = 0; n < 501; n++) feed.put(status(`op_${n}`, "running"), feed.version());
  feed.put(status("op_ended", "failed"), feed.version());
  const first = await feed.wait("another:7", 5, never);
  assert.equal(first.operations.length, 500);
  const second = await feed.wait(first.cursor, 5, never);
  assert.deepEqual(second.operations.map((o) => o.operationId), ["op_500"]);
  assert.equal((await feed.wait(second.cursor, 0, never)).operations.length, 0);
  await assert.rejects(feed.wait("no cursor", 0, never), /cursor/);
});

test("members that left and those that never came are forgotten, also by the next process", () => {
  const dir = folder();
  const known = new Instances(dir);
  const d = dispatch();
  d.members.push({ ...d.members[0]!, id: "mem_2", index: 1 });
  known.learn(d);
  known.settle(d, { ...status("op_1", "succeeded"), members: [{ id: "mem_1", status: "removed", health: "unknown" }] });
  assert.deepEqual(new Instances(dir).get("ins_1")?.members.map((m) => m.id), ["mem_2"]);
  const add = { ...d, kind: "members.add" as const, targets: ["mem_2"] };
  known.settle(add, status("op_2", "canceled"));
  assert.deepEqual(known.get("ins_1")?.members, []);
  known.settle({ ...d, kind: "instance.decommission" }, status("op_3", "succeeded"));
  assert.equal(new Instances(dir).get("ins_1"), undefined);
  assert.deepEqual(new Instances(dir).get("ins_1", true)?.members, [], "usage still knows it");
});
