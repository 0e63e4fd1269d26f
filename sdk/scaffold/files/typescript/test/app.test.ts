import assert from "node:assert/strict";
import { test } from "node:test";
import { app } from "../src/app.js";
import { Refusal, type Asked } from "../src/kit/contract.js";

test("more members than the manifest allows are refused", () => {
  const asked = { kind: "instance.create", members: [], instance: { components: [{ key: "worker", count: 17 }] } } as unknown as Asked;
  assert.throws(() => app("").check(asked), (error: unknown) => error instanceof Refusal && error.body.code === "ABOVE_MAXIMUM");
});

test("the adapter describes itself with the manifest", () => {
  const { info } = app("");
  assert.equal(info.slug, "__NAME__");
  assert.deepEqual(info.actions.map((action) => action.name), ["__NAME__.read"]);
});
