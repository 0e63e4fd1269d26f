// The app without a platform. "appctl adapter check" executes the node tasks, too.
import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { test } from "node:test";
import { counter } from "../src/counter.js";
import { FakePlatform, succeed, type Node } from "../src/kit/testing.js";

const node: Node = (member, kind, spec) => {
  const args = (spec["command"] as string[] | undefined) ?? [];
  return args.includes("total") ? { state: "SUCCEEDED", result: { exitCode: 0, stdout: "7\n" } } : succeed(member, kind, spec);
};

test("a counter lives from launch to teardown, and what it counted is metered", async (t) => {
  const platform = await new FakePlatform(node).open();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "counter-"));
  const app = counter(path.join(folder, "app"));
  const adapter = await platform.adapter([app], folder);
  t.after(async () => {
    await adapter.stop();
    platform.close();
    fs.rmSync(folder, { recursive: true });
  });
  for (const [id, kind] of [["op_1", "instance.create"], ["op_2", "instance.decommission"]] as const) {
    await adapter.put(platform.dispatch(id, kind, app));
    const status = await adapter.end(id);
    assert.equal(status.state, "succeeded", JSON.stringify(status.error));
  }
  type Page = { records: { quantity: string; memberId: string }[] };
  const { body } = await adapter.call<Page>("GET", "/v1/instances/ins_1/usage");
  assert.deepEqual(body.records.map((r) => [r.memberId, r.quantity]), [["mem_0", "7"], ["mem_1", "7"]]);
});
