// The adapter without a platform. "appctl adapter check" executes the node tasks, too.
import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { test, type TestContext } from "node:test";
import { app } from "../src/app.js";
import type { App } from "../src/kit/index.js";
import { FakePlatform, type FakeAdapter } from "../src/kit/testing.js";

async function start(t: TestContext): Promise<{ platform: FakePlatform; adapter: FakeAdapter; own: App }> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "__NAME__-"));
  const own = app(folder);
  const platform = await new FakePlatform().open();
  const adapter = await platform.adapter([own], folder);
  t.after(async () => {
    await adapter.stop();
    platform.close();
    fs.rmSync(folder, { recursive: true });
  });
  return { platform, adapter, own };
}

test("an instance lives from launch to teardown", async (t) => {
  const { platform, adapter, own } = await start(t);
  for (const [id, kind] of [["op_1", "instance.create"], ["op_2", "instance.decommission"]] as const) {
    await adapter.put(platform.dispatch(id, kind, own));
    const status = await adapter.end(id);
    assert.equal(status.state, "succeeded", JSON.stringify(status.error));
  }
});

test("more members than the manifest allows are refused", async (t) => {
  const { platform, adapter, own } = await start(t);
  const { code, body } = await adapter.put(platform.dispatch("op_1", "instance.create", own, 17));
  assert.deepEqual([code, body.code], [422, "ABOVE_MAXIMUM"]);
});

test("the adapter describes itself with the manifest", () => {
  const { info } = app("");
  assert.equal(info.slug, "__NAME__");
  assert.deepEqual(info.actions.map((action) => action.name), ["__NAME__.read"]);
});
