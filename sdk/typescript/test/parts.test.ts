// The kit's parts, each alone.
import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { after, test } from "node:test";
import { App, every, Interrupted, Keys, pause, seal, TimedOut, UsageLog, within, type UsageRecord } from "../src/index.js";
import { clip } from "../src/contract.js";
import { Log, mask } from "../src/log.js";
import { using } from "../src/scope.js";
import { open } from "../src/seal.js";

/** folder makes a folder that is deleted when the test that asked for it has ended. */
const folder = (): string => {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), "parts-"));
  after(() => fs.rmSync(made, { recursive: true, force: true }));
  return made;
};

test("a box of libsodium's is opened, and its own kind is written", () => {
  const key = Buffer.from(Array.from({ length: 32 }, (_, n) => n));
  const theirs = "Pwy9TFNHm1eXsXN9tO6eJb/dfBR0MQAdKYz3maJitAETabq2OJtYSjtpP93XoIdWxe+XszAlfRwAZ28QqDpRVff4s68DjH8F+kA2BtSiJ+N3hTKewblwu0tXMYk=";
  assert.deepEqual(open(key, theirs), { instanceId: "ins_1", value: Buffer.from("beat") });
  const publicKey = Buffer.from("8f40c5adb68f25624ae5b214ea767a6ec94d829d3d7b5e1ad1ba6f3e2138285f", "hex").toString("base64");
  const sealed = seal(publicKey, "ins_2", "another");
  assert.notEqual(sealed, seal(publicKey, "ins_2", "another"));
  assert.deepEqual(open(key, sealed), { instanceId: "ins_2", value: Buffer.from("another") });
  for (const [bad, instance] of [["", "ins_1"], ["AAAA", "ins_1"], [publicKey, ""]] as const) {
    assert.throws(() => seal(bad, instance, "x"), /seal/);
  }
});

test("a scope ends what waits in it", async () => {
  await assert.rejects(within(0.02, () => pause(30)), TimedOut);
  const outer = new AbortController();
  setTimeout(() => outer.abort(new Interrupted("canceled")), 20);
  await assert.rejects(using(outer.signal, () => within(30, () => pause(30))), { why: "canceled" });
});

test("the first error of several ends the others and is the one that is thrown", async () => {
  const ended: unknown[] = [];
  const work = every([1, 2, 3], async (n) => {
    if (n === 2) throw new Error("broken");
    await pause(30).catch((error: unknown) => { ended.push(error); throw error; });
  });
  await assert.rejects(work, /broken/);
  assert.equal(ended.length, 2);
});

const record = (id: string, quantity: string): UsageRecord => ({ id, dimension: "d", quantity, from: "", to: "" });

test("usage is counted once and read again", () => {
  const dir = folder();
  const log = new UsageLog(dir);
  for (let n = 0; n < 2; n++) log.add("ins_1", record("a", "1"), record("b", "2"));
  const page = log.page("ins_1", "");
  assert.deepEqual([page.count, page.records.map((r) => r.id)], [2, ["a", "b"]]);
  const again = new UsageLog(dir);
  again.add("ins_1", record("b", "2"), record("c", "3"));
  assert.deepEqual(again.page("ins_1", page.cursor).records.map((r) => r.id), ["c"]);
  assert.equal(again.page("ins_1", "other.7").records.length, 3);
  assert.throws(() => again.page("../x", ""), /not an instance's id/);
});

test("a counter is read on where it was", () => {
  const dir = folder();
  for (const total of [3, 3, 10]) new UsageLog(dir).count("ins_1", "mem_1", "beats", "run-a", total);
  new UsageLog(dir).count("ins_1", "mem_1", "beats", "run-b", 2);
  const records = new UsageLog(dir).records("ins_1");
  assert.deepEqual(records.map((r) => r.quantity), ["3", "7", "2"]);
  assert.equal(records[0]?.to, records[1]?.from);
});

test("the same words are the same password", () => {
  const dir = folder();
  const [first, again] = [new Keys(path.join(dir, "key")), new Keys(path.join(dir, "key"))];
  assert.equal(first.password("a", "bc"), again.password("a", "bc"));
  assert.notEqual(first.password("a", "bc"), first.password("ab", "c"));
});

test("texts are cut between characters", () => assert.equal(clip("äö", 3), "ä"));

test("the log masks tokens and shows the cause of an error", () => {
  assert.equal(mask("Bearer abcdef.ghijkl; no bearer token"), "[hidden]; no bearer token");
  const lines: string[] = [];
  new Log("info", { a: 1 }, (line) => lines.push(line)).bind({ b: 2 }).error("broken", { error: new Error("x", { cause: "y" }) });
  const line = JSON.parse(lines.join("")) as Record<string, string>;
  assert.deepEqual([line["a"], line["b"], line["level"]], [1, 2, "error"]);
  assert.match(line["error"] ?? "", /Error: x[^]*caused by y/);
});

test("an app is as its manifest says, or it is refused", () => {
  const action = { name: "a.read", displayName: "", permissionKey: "", risk: "read" as const, inputSchema: {}, outputSchema: {} };
  const manifest = { app: "a", components: [], actions: [action] };
  assert.throws(() => new App(manifest, { operations: {} }), /action a.read has no function/);
  assert.throws(() => new App({ ...manifest, actions: [] }, { operations: {}, actions: { "a.read": async () => ({}) } }), /no action a.read/);
});
