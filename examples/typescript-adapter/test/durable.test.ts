import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { test } from "node:test";
import type { Status } from "../src/kit/contract.js";
import { Feed } from "../src/kit/feed.js";
import { readLines } from "../src/kit/files.js";
import { Instances } from "../src/kit/instances.js";
import { accepted, Journal, Operation } from "../src/kit/operation.js";
import { dispatch } from "./sample.js";

const folder = (): string => fs.mkdtempSync(path.join(os.tmpdir(), "counter-"));
const never = new AbortController().signal;
const status = (id: string, state: Status["state"]): Status => ({ operationId: id, attempt: 1, state, phase: "", percent: 0, message: "", members: [] });

test("a torn last line is cut off, and a file without a whole first line is no operation", async () => {
  const dir = folder();
  const journal = new Journal(dir);
  const op = new Operation("op_1", dispatch(), accepted(dispatch()));
  journal.append(op, { at: 1, dispatch: op.dispatch, hash: "h", generation: 1, status: op.status }, true);
  await journal.appendStep(op, { at: 2, step: "s", spec: { a: 1 } });
  fs.appendFileSync(path.join(dir, "op_1.jsonl"), '{"at":3,"sta');
  fs.writeFileSync(path.join(dir, "op_2.jsonl"), '{"at":1,"dispatch":{');
  const found = new Journal(dir).load();
  assert.deepEqual(found.map((o) => o.id), ["op_1"]);
  assert.deepEqual(found[0]?.steps.get("s"), { a: 1 });
  assert.equal(readLines(path.join(dir, "op_1.jsonl")).length, 2);
});

test("an ended operation keeps neither token nor steps", async () => {
  const dir = folder();
  const journal = new Journal(dir);
  const op = new Operation("op_1", dispatch(), accepted(dispatch()));
  journal.append(op, { at: 1, dispatch: op.dispatch, hash: "h", generation: 1, status: op.status }, true);
  await journal.appendStep(op, { at: 2, step: "secret-step", spec: {} });
  journal.close(op, { ...op.status, state: "succeeded" }, 9);
  const raw = fs.readFileSync(path.join(dir, "op_1.jsonl"), "utf8");
  assert.ok(!raw.includes("secret-step") && !raw.includes('"token":"t"'));
  assert.equal(fs.statSync(path.join(dir, "op_1.jsonl")).mode & 0o777, 0o600);
  const again = new Journal(dir).load()[0];
  assert.equal(again?.began, 1);
  assert.equal(again?.version, 9);
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
});
