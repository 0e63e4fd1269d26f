import assert from "node:assert/strict";
import { test } from "node:test";
import { canonical, specHash } from "../src/canonical.js";
import { Refusal, type Dispatch } from "../src/contract.js";
import { dispatch } from "./sample.js";
import { compile } from "../src/schema.js";
import { readDispatch } from "../src/validate.js";

const copy = (): Record<string, any> => structuredClone(dispatch()) as unknown as Record<string, any>;

test("canonical JSON does not depend on the order of keys", () => {
  assert.equal(canonical({ b: 1, a: [{ d: null, c: "x" }] }), canonical({ a: [{ c: "x", d: null }], b: 1 }));
  assert.equal(canonical(undefined), "null");
});

test("what moves is no part of the specification", () => {
  const moved = copy();
  Object.assign(moved, { attempt: 7, force: true, deadline: "2098-01-01T00:00:00Z", traceparent: "t" });
  Object.assign(moved["members"][0], { status: "draining", cordoned: true, labels: { a: "b" } });
  moved["members"][0].node.reachable = false;
  assert.equal(specHash(moved as unknown as Dispatch), specHash(dispatch()));
});

test("everything else is part of the specification", () => {
  const changes: ((d: Record<string, any>) => void)[] = [
    (d) => { d["kind"] = "member.remove"; }, (d) => { d["targets"] = []; }, (d) => { d["change"] = { x: 1 }; },
    (d) => { d["instance"].config = { step: 2 }; }, (d) => { d["members"][0].node.address = "10.0.0.2"; }, (d) => { d["instance"].components[0].count = 2; },
  ];
  for (const change of changes) {
    const other = copy();
    change(other);
    assert.notEqual(specHash(other as unknown as Dispatch), specHash(dispatch()));
  }
});

test("a malformed dispatch is refused by the path of its field", () => {
  const faults: [string, (d: Record<string, any>) => void][] = [
    ["operationId", (d) => { d["operationId"] = "../x"; }], ["attempt", (d) => { d["attempt"] = 0; }], ["attempt", (d) => { d["attempt"] = "1"; }],
    ["deadline", (d) => { delete d["deadline"]; }], ["kind", (d) => { d["kind"] = "instance.paint"; }], ["targets[0]", (d) => { d["targets"] = ["mem_9"]; }],
    ["members[1].id", (d) => { d["members"].push(d["members"][0]); }], ["platform.token", (d) => { d["platform"].token = ""; }],
    ["instance.app", (d) => { d["instance"].app = ""; }], ["members[0].node.reachable", (d) => { d["members"][0].node.reachable = 1; }],
  ];
  for (const [path, spoil] of faults) {
    const bad = copy();
    spoil(bad);
    assert.throws(() => readDispatch(bad, "op_1"), (error) => error instanceof Refusal && error.status === 400 && error.body.path === path, path);
  }
  assert.equal(readDispatch({ ...dispatch(), fromTheFuture: true }, "op_1").operationId, "op_1");
});

test("a schema names the first field that breaks it", () => {
  const check = compile({
    type: "object", additionalProperties: false, required: ["n"],
    properties: { n: { type: "integer", minimum: 1, maximum: 3 }, s: { type: "string", minLength: 1, pattern: "^[a-z]+$" } },
  });
  assert.equal(check({ n: 2, s: "ab" }, "input"), undefined);
  const broken: [unknown, string][] = [
    [{}, "input"], [{ n: 4 }, "input.n"], [{ n: 1.5 }, "input.n"], [{ n: 1, x: 1 }, "input.x"], [{ n: 1, s: "" }, "input.s"],
    [{ n: 1, s: "A" }, "input.s"], [[], "input"], [null, "input"], [JSON.parse('{"n":1,"__proto__":1}'), "input.__proto__"],
  ];
  for (const [value, path] of broken) assert.equal(check(value, "input")?.path, path, JSON.stringify(value));
  const one = compile({ oneOf: [{ type: "string" }, { type: "array", items: { $ref: "#/$defs/n" } }], $defs: { n: { minimum: 2 } } });
  assert.equal(one([2, 3], "x"), undefined);
  assert.equal(one([2, 1], "x")?.path, "x[1]");
  assert.equal(compile(null)({ a: 1 }, "config")?.path, "config");
});
