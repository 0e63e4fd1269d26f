// The kit keeps the contract: a dispatched operation happens once, also across a restart.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { Log, type Dispatch, type Refusal, type Status } from "../src/index.js";
import { open } from "../src/seal.js";
import { succeed } from "../src/testing.js";
import { readAction } from "../src/validate.js";
import { Bench, Held, pulse } from "./pulse.js";

const keyOf = (bench: Bench): Buffer => bench.platform.sealing.privateKey.export({ type: "pkcs8", format: "der" }).subarray(-32);

test("a dispatch is done once however often it comes", async (t) => {
  const bench = await Bench.open(t);
  const adapter = await bench.start();
  const body = bench.create();
  assert.equal((await adapter.put(body)).code, 202);
  const status = await adapter.end("op_1");
  assert.equal(status.state, "succeeded", JSON.stringify(status.error));
  assert.deepEqual(status.evidence, { once: "made" });
  const moved = { ...bench.create({ deadline: "2099-01-01T00:00:00Z", correlationId: "other" }), extra: 1 };
  moved.members[0]!.cordoned = true;
  assert.deepEqual(await adapter.put(moved), { code: 200, body: status });
  assert.equal(bench.platform.tasks.size, 4);
  const spec = bench.platform.tasks.get("mem_0/op_1.1.mem_0.secret")?.input["spec"] as { sealed: string };
  assert.deepEqual(open(keyOf(bench), spec.sealed), { instanceId: "ins_1", value: Buffer.from("beat") });
});

test("what an operation calls for belongs to the trace that it was dispatched in", async (t) => {
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const bench = await Bench.open(t);
  const adapter = await bench.start();
  const answer = await adapter.call("PUT", "/v1/operations/op_1", bench.create(), undefined, { traceparent });
  assert.equal(answer.code, 202);
  await adapter.end("op_1");
  assert.deepEqual([...new Set(bench.platform.traces)], [traceparent]);
});

test("another specification and a lower attempt are refused", async (t) => {
  const bench = await Bench.open(t);
  const adapter = await bench.start();
  await adapter.put(bench.create({ attempt: 2 }));
  const other = await adapter.put(bench.create({ attempt: 1, change: { unknown: 1 } }));
  assert.deepEqual([other.code, other.body.code], [409, "BODY_MISMATCH"]);
  const lower = await adapter.put(bench.create({ attempt: 1 }));
  assert.deepEqual([lower.code, lower.body.code, lower.body.path], [409, "STALE_FENCE", "attempt"]);
});

test("what was killed goes on with the same tasks and the same bytes", async (t) => {
  const held = new Held();
  const bench = await Bench.open(t, pulse(), held.node);
  const first = await bench.start();
  await first.put(bench.create());
  await held.reached;
  const killed = bench.killed();
  held.letGo();
  await first.end("op_1");
  const adapter = await bench.start(killed);
  const status = await adapter.end("op_1");
  assert.equal(status.state, "succeeded", "a step with other bytes would be refused");
  assert.equal(bench.platform.tasks.size, 4);
  assert.equal((await adapter.call("GET", "/v1/instances/ins_1")).code, 200);
});

test("a stop parks the run and cancels no task", async (t) => {
  const held = new Held();
  const bench = await Bench.open(t, pulse(), held.node);
  const first = await bench.start();
  await first.put(bench.create());
  await held.reached;
  await first.stop();
  assert.ok(!bench.calls().includes("CancelNodeTask"));
  held.letGo();
  assert.equal((await (await bench.start()).end("op_1")).state, "succeeded");
});

test("a cancel stops the run and its tasks", async (t) => {
  const held = new Held();
  const bench = await Bench.open(t, pulse(), held.node);
  const adapter = await bench.start();
  await adapter.put(bench.create());
  await held.reached;
  const { body } = await adapter.call("POST", "/v1/operations/op_1/cancel", { attempt: 1 });
  assert.equal(body["outcome"], "canceled");
  assert.ok(bench.calls().includes("CancelNodeTask"));
  assert.equal((await adapter.end("op_1")).error?.code, "CANCELED");
});

test("a cancel after the point of no return comes too late", async (t) => {
  const held = new Held();
  const app = pulse({ operations: { "member.label": async (run) => {
    run.commit();
    await run.do(run.members[0]!, "start", { kind: "START_PROCESS", spec: {} });
  } } });
  const bench = await Bench.open(t, app, held.node);
  const adapter = await bench.start();
  await adapter.put(bench.platform.dispatch("op_1", "member.label", app));
  await held.reached;
  const { body } = await adapter.call("POST", "/v1/operations/op_1/cancel", { attempt: 1 });
  assert.equal(body["outcome"], "too_late");
  held.letGo();
  assert.equal((await adapter.end("op_1")).state, "succeeded");
});

test("a cancel of an unknown operation leaves a tombstone on disk", async (t) => {
  const bench = await Bench.open(t);
  const first = await bench.start();
  const { body } = await first.call("POST", "/v1/operations/op_1/cancel", { attempt: 1 });
  assert.deepEqual([body["outcome"], body["tombstone"]], ["unknown", true]);
  await first.stop();
  const adapter = await bench.start();
  const answer = await adapter.put(bench.create());
  assert.deepEqual([answer.code, answer.body.state], [200, "canceled"]);
  assert.equal(bench.platform.tasks.size, 0);
  assert.equal((await adapter.call("GET", "/v1/instances/ins_1")).code, 404);
});

test("the deadline ends a run", async (t) => {
  const bench = await Bench.open(t, pulse(), new Held().node);
  const adapter = await bench.start();
  await adapter.put(bench.create({ deadline: new Date(Date.now() + 500).toISOString() }));
  const { error } = await adapter.end("op_1");
  assert.deepEqual([error?.code, error?.owner, error?.retryable], ["DEADLINE_EXCEEDED", "adapter", true]);
});

test("force with a higher attempt begins again", async (t) => {
  const held = new Held();
  const bench = await Bench.open(t, pulse(), held.node);
  const adapter = await bench.start();
  await adapter.put(bench.create());
  await held.reached;
  await adapter.put(bench.create({ attempt: 2, force: true }));
  held.letGo();
  const status = await adapter.end("op_1");
  assert.deepEqual([status.state, status.attempt], ["succeeded", 2]);
  assert.ok(bench.platform.tasks.has("mem_0/op_1.2.mem_0.start"));
});

test("a forced teardown passes over a node that is away", async (t) => {
  const bench = await Bench.open(t);
  const adapter = await bench.start();
  const body = bench.end({ force: true });
  body.members[1]!.node.reachable = false;
  await adapter.put(body);
  assert.deepEqual((await adapter.end("op_2")).evidence, { notTornDown: ["mem_1"], residue: { mem_0: 0 } });
});

test("any name of a step makes a key that the platform takes", async (t) => {
  const app = pulse({ operations: { "member.label": async (run) => {
    for (const step of ["with spaces", "ä", "x".repeat(200)]) await run.do(run.members[0]!, step, { kind: "RUN", spec: {} });
  } } });
  const bench = await Bench.open(t, app);
  const adapter = await bench.start();
  await adapter.put(bench.platform.dispatch("op_1", "member.label", app));
  await adapter.end("op_1");
  const keys = [...bench.platform.tasks.values()].map((task) => String(task.input["idempotencyKey"]));
  assert.equal(new Set(keys).size, 3);
  for (const key of keys) assert.match(key, /^[!-~]{1,128}$/);
});

test("a failed task fails the operation with the node's words, and a higher attempt begins again", async (t) => {
  const bench = await Bench.open(t, pulse(), () => ({ state: "FAILED", message: "exit 1", stderr: "no such file" }));
  const adapter = await bench.start();
  await adapter.put(bench.create());
  const { error } = await adapter.end("op_1");
  assert.deepEqual([error?.code, error?.owner], ["NODE_TASK_FAILED", "node"]);
  assert.match(error?.message ?? "", /no such file/);
  bench.platform.node = succeed;
  await adapter.put(bench.create({ attempt: 2 }));
  assert.equal((await adapter.end("op_1")).state, "succeeded");
});

test("an add that fails is undone, and the error is the first one", async (t) => {
  const undone: string[] = [];
  const app = pulse({ operations: { "members.add": (run) => run.undoing(
    async () => { for (const m of run.targets) undone.push((await run.attempt(m, "undo", { kind: "RUN", spec: {} })).state); },
    () => run.each(run.targets, async (m) => { await run.do(m, "start", { kind: "START_PROCESS", spec: {} }); })) } });
  const node = (_: string, kind: string): object => kind === "RUN" ? { state: "SUCCEEDED" } : { state: "FAILED", message: "broken" };
  const bench = await Bench.open(t, app, node);
  const adapter = await bench.start();
  await adapter.put(bench.platform.dispatch("op_1", "members.add", app, 2, { targets: ["mem_0", "mem_1"] }));
  assert.match((await adapter.end("op_1")).error?.message ?? "", /step start on member mem_\d .*broken/);
  assert.deepEqual(undone, ["SUCCEEDED", "SUCCEEDED"]);
});

test("an unexpected error stays in the log", async (t) => {
  const app = pulse({ operations: { "member.label": async () => { throw new Error("in /home/of/somebody"); } } });
  const bench = await Bench.open(t, app);
  const lines: string[] = [];
  const adapter = await bench.start(bench.state, new Log("info", {}, (line) => lines.push(line)));
  await adapter.put(bench.platform.dispatch("op_1", "member.label", app));
  const { error } = await adapter.end("op_1");
  assert.deepEqual([error?.code, error?.message], ["INTERNAL", "the adapter had an internal error"]);
  assert.match(lines.join(""), /in \/home\/of\/somebody/);
});

test("a call that did not get through is repeated", async (t) => {
  const bench = await Bench.open(t);
  bench.platform.failures = [503, 429, 500];
  const adapter = await bench.start();
  await adapter.put(bench.create());
  assert.equal((await adapter.end("op_1")).state, "succeeded");
  assert.deepEqual(bench.platform.failures, []);
  assert.equal(bench.platform.tasks.size, 4);
});

test("a token is renewed before its end", async (t) => {
  const bench = await Bench.open(t);
  bench.platform.tokenSeconds = 30;
  const adapter = await bench.start();
  await adapter.put(bench.create());
  assert.equal((await adapter.end("op_1")).state, "succeeded");
  assert.ok(bench.platform.calls.some((call) => call.token === "renewed-token-op_1"));
});

test("a refusal for good is the platform's failure", async (t) => {
  const bench = await Bench.open(t);
  bench.platform.tasks.set("mem_0/op_1.1.mem_0.secret", { id: "x", input: {}, state: "SUCCEEDED", begun: 1 });
  const adapter = await bench.start();
  await adapter.put(bench.create({}, 1));
  const { error } = await adapter.end("op_1");
  assert.deepEqual([error?.code, error?.owner], ["PLATFORM_REFUSED", "platform"]);
});

test("a secret for the adapter is redeemed and masked", async (t) => {
  const lines: string[] = [];
  const app = pulse({ operations: { "member.label": async (run) => {
    const id = await run.client.issueSecret(run.instance.id, "pulse.token");
    run.log.info(`it is ${await run.client.redeemSecret(id)}`);
  } } });
  const bench = await Bench.open(t, app);
  const adapter = await bench.start(bench.state, new Log("debug", {}, (line) => lines.push(line)));
  await adapter.put(bench.platform.dispatch("op_1", "member.label", app));
  await adapter.end("op_1");
  const log = lines.join("");
  assert.match(log, /it is \[hidden\]/);
  assert.match(log, /"correlation_id":"cor-1"/);
  assert.doesNotMatch(log, /redeemed-secret|token-op_1/);
});

test("a key of an action serves one input, and a repeat is the same tasks", async (t) => {
  const bench = await Bench.open(t);
  const adapter = await bench.start();
  const act = (input: object): Promise<{ code: number; body: Record<string, unknown> }> =>
    adapter.call("POST", "/v1/instances/ins_1/actions/pulse.read", {
      ...bench.create(), input, idempotencyKey: "k", requester: { id: "u", kind: "user" },
    });
  assert.deepEqual(await act({ limit: 1 }), { code: 200, body: { output: { beats: ["", ""] } } });
  const made = bench.platform.tasks.size;
  assert.equal((await act({ limit: 1 })).code, 200);
  assert.equal(bench.platform.tasks.size, made);
  const other = await act({ limit: 2 });
  assert.deepEqual([other.code, other.body["code"]], [409, "IDEMPOTENCY_KEY_REUSED"]);
  const wrong = await act({ limit: "x" });
  assert.deepEqual([wrong.code, wrong.body["path"]], [422, "input.limit"]);
});

test("an output that breaks its schema is the adapter's fault", async (t) => {
  const bench = await Bench.open(t, pulse({ actions: { "pulse.read": async () => ({}) } }));
  const adapter = await bench.start();
  const { code, body } = await adapter.call("POST", "/v1/instances/ins_1/actions/pulse.read", {
    ...bench.create(), input: {}, idempotencyKey: "k", requester: { id: "u", kind: "user" },
  });
  assert.deepEqual([code, body["code"]], [500, "INTERNAL"]);
});

test("the account of a requester is read where it is sent", async (t) => {
  const bench = await Bench.open(t);
  const who = { id: "u", kind: "user" };
  const read = (posix?: object) =>
    readAction({ ...bench.create(), input: {}, idempotencyKey: "k", requester: { ...who, posix } }, "ins_1").requester;
  assert.deepEqual(read(), { ...who, projectId: "" });
  const account = { name: "ada", uid: 1004, gid: 1004 };
  assert.deepEqual(read(account).posix, account);
  assert.throws(() => read({ ...account, uid: "0" }), (err: Refusal): boolean => err.body.path === "requester.posix.uid");
});

test("a plan is bounded and a refusal is its reason", async (t) => {
  const bench = await Bench.open(t);
  const adapter = await bench.start();
  type Plan = { verdict: string; workLost: { name: string }[]; workTotal: number; reasons: { code: string }[] };
  const { code, body } = await adapter.call<Plan>("POST", "/v1/plans", bench.create());
  assert.deepEqual([code, body.workLost.length, body.workTotal, body.workLost[0]?.name.length], [200, 100, 200, 200]);
  const many = bench.create();
  many.instance.components = [{ key: "beater", count: 9 }];
  const refused = await adapter.call<Plan>("POST", "/v1/plans", many);
  assert.deepEqual([refused.body.verdict, refused.body.reasons[0]?.code], ["unsafe", "ABOVE_MAXIMUM"]);
});

test("an app chooses who leaves", async (t) => {
  const bench = await Bench.open(t, pulse({
    leaving: async (call, count) => call.targets.slice(-count), operations: { "member.remove": async () => undefined },
  }));
  const adapter = await bench.start();
  const described = await adapter.call<{ apps: { choosesLeaving: boolean }[] }>("GET", "/v1/adapter");
  assert.equal(described.body.apps[0]?.choosesLeaving, true);
  const asked = { ...bench.create({ kind: "member.remove", targets: ["mem_0", "mem_1"] }), choose: { componentKey: "beater", count: 1 } };
  assert.deepEqual((await adapter.call("POST", "/v1/plans", asked)).body["chosen"], ["mem_1"]);
  const { code, body } = await adapter.call("POST", "/v1/plans", { ...asked, choose: { componentKey: "beater", count: 3 } });
  assert.deepEqual([code, body["path"]], [400, "choose.count"]);
});

test("malformed bodies are refused by path, and nothing is begun", async (t) => {
  const bench = await Bench.open(t);
  const adapter = await bench.start();
  const spoilt: [string, (d: Dispatch) => object][] = [
    ["members[1].id", (d) => ({ members: [d.members[0], d.members[0]] })], ["targets[0]", () => ({ targets: ["mem_9"] })],
    ["attempt", () => ({ attempt: true })], ["deadline", () => ({ deadline: null })],
    ["platform.token", (d) => ({ platform: { ...d.platform, token: null } })],
    ["instance.config", (d) => ({ instance: { ...d.instance, config: [] } })],
  ];
  for (const [path, spoil] of spoilt) {
    const body = bench.create();
    const answer = await adapter.put({ ...body, ...spoil(body) } as Dispatch);
    assert.deepEqual([answer.code, answer.body.path], [400, path]);
  }
  for (const raw of ["{", '{"attempt": NaN}', "[".repeat(100_000), '"text"']) {
    assert.equal((await adapter.call("PUT", "/v1/operations/op_1", raw)).code, 400);
  }
  assert.equal((await adapter.call("PUT", "/v1/operations/op_1", " ".repeat((1 << 20) + 1))).code, 413);
  assert.equal(bench.platform.tasks.size, 0);
  assert.equal((await adapter.call("GET", "/v1/operations/op_1")).code, 404);
});

test("a decommissioned instance is known to usage alone", async (t) => {
  const bench = await Bench.open(t);
  const adapter = await bench.start();
  await adapter.put(bench.create());
  await adapter.end("op_1");
  const seen = await adapter.call<{ health: string }>("GET", "/v1/instances/ins_1");
  assert.equal(seen.body.health, "healthy");
  await adapter.put(bench.end());
  await adapter.end("op_2");
  assert.equal((await adapter.call("GET", "/v1/instances/ins_1")).code, 404);
  const usage = await adapter.call("GET", "/v1/instances/ins_1/usage");
  assert.deepEqual(usage, { code: 200, body: { cursor: "", records: [] } });
});

test("the feed goes on after a restart", async (t) => {
  const bench = await Bench.open(t);
  const first = await bench.start();
  type Page = { cursor: string; operations: Status[] };
  const { cursor } = (await first.call<Page>("GET", "/v1/operations")).body;
  await first.put(bench.create());
  await first.end("op_1");
  await first.stop();
  const adapter = await bench.start();
  const page = (await adapter.call<Page>("GET", `/v1/operations?after=${cursor}`)).body;
  assert.deepEqual(page.operations.map((status) => status.operationId), ["op_1"]);
  assert.equal((await adapter.call("GET", "/v1/operations?after=nonsense")).code, 400);
  assert.equal((await adapter.call("GET", "/v1/operations?wait=31")).code, 400);
});

test("only the platform's word for this request counts, and a rotated key is fetched", async (t) => {
  const bench = await Bench.open(t);
  const adapter = await bench.start();
  const now = Math.floor(Date.now() / 1000);
  for (const claims of [{ iss: "http://other" }, { aud: "other" }, { iat: 1, exp: 61 }, { htm: "PUT" }, { htu: "/v1/plans" }, { exp: now + 3600 }, { bd: "x" }]) {
    const token = bench.platform.token("GET", "/v1/adapter", "", claims);
    const { code, body } = await adapter.call("GET", "/v1/adapter", undefined, token);
    assert.deepEqual([code, body["code"]], [401, "UNAUTHENTICATED"], JSON.stringify(claims));
  }
  assert.equal((await adapter.call("GET", "/v1/adapter")).code, 200);
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() + 6000 }); // a key that is not known is fetched every five seconds
  bench.platform.key = generateKeyPairSync("ed25519");
  bench.platform.kid = "key-2";
  assert.equal((await adapter.call("GET", "/v1/adapter")).code, 200);
});
