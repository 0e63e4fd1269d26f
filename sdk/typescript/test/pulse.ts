// The small app of the kit's own tests, and the fixtures that its tests begin with.
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import type { TestContext } from "node:test";
import {
  App, checkCounts, observeMembers, planOfWork, seal, tasks, type Dispatch, type Functions, type Manifest, type Work,
} from "../src/index.js";
import type { Log } from "../src/log.js";
import { FakePlatform, succeed, type FakeAdapter, type Node } from "../src/testing.js";

const manifest: Manifest = {
  app: "pulse", version: "1.0.0",
  components: [{ key: "beater", displayName: "Beater", min: 1, max: 4, default: 2 }],
  configSchema: {
    type: "object", additionalProperties: false, properties: { every: { type: "integer", minimum: 1 } },
  },
  actions: [{
    name: "pulse.read", displayName: "Read", permissionKey: "apps.queue.read", risk: "read",
    inputSchema: { type: "object", additionalProperties: false, properties: { limit: { type: "integer" } } },
    outputSchema: { type: "object", required: ["beats"] },
  }],
  usageDimensions: [{ name: "beats", unit: "count" }],
};

/** pulse is an app with two operations, an action, an observation and a plan. */
export function pulse(more: Partial<Functions> = {}): App {
  return new App(manifest, {
    check: (asked) => checkCounts(manifest.components, asked),
    observe: (call) => observeMembers(call, "beaters beat", async (member) => {
      const seen = await call.ask(member, "inspect", tasks.inspectProcess("beater"));
      return seen?.process === "running" ? ["healthy", "it beats"] : ["unknown", "silent"];
    }),
    actions: {
      "pulse.read": async (call) =>
        ({ beats: await Promise.all(call.of("beater").map(async (m) => (await call.do(m, "tail", tasks.run(["tail"]))).stdout)) }),
    },
    plan: async () => {
      const work: Work = { kind: "job", id: "1", name: "x".repeat(500), owner: "", since: "2026-01-01T00:00:00Z", message: "" };
      return planOfWork(Array.from({ length: 200 }, () => work), [], { lost: true, reversible: false, what: "jobs" });
    },
    ...more,
    operations: {
      "instance.create": async (run) => {
        run.progress("starting", 10, "starting");
        await run.each(run.of("beater"), async (member) => {
          const sealed = seal(member.node.sealingKey, run.instance.id, "beat");
          await run.do(member, "secret", tasks.writeFile("/srv/secret", { sealed }));
          await run.do(member, "start", tasks.startProcess("beater", ["beat"]));
          run.member(member.id, "active", "healthy");
        });
        run.evidence("once", await run.once("name", () => "made"));
      },
      "instance.decommission": async (run) => {
        run.commit();
        await run.teardown(run.of("beater"));
      },
      ...more.operations,
    },
  });
}

/** Held is a node that leaves START_PROCESS running until the test releases it. */
export class Held {
  private go = false;
  private wake: () => void = () => undefined;
  readonly reached = new Promise<void>((resolve) => { this.wake = resolve; });
  letGo(): void { this.go = true; }
  readonly node: Node = (member, kind, spec) => {
    if (kind !== "START_PROCESS" || this.go) return succeed(member, kind, spec);
    this.wake();
    return undefined;
  };
}

/** Bench is a platform, a state folder, and adapters that are stopped at the end of a test. */
export class Bench {
  readonly state = fs.mkdtempSync(path.join(os.tmpdir(), "pulse-"));
  private readonly started: FakeAdapter[] = [];

  private constructor(readonly platform: FakePlatform, readonly app: App) {}

  static async open(t: TestContext, app = pulse(), node?: Node): Promise<Bench> {
    const bench = new Bench(await new FakePlatform(node).open(), app);
    t.after(async () => {
      await Promise.all(bench.started.map((adapter) => adapter.stop()));
      bench.platform.close();
      fs.rmSync(bench.state, { recursive: true, force: true });
    });
    return bench;
  }

  async start(state = this.state, log?: Log): Promise<FakeAdapter> {
    const adapter = await this.platform.adapter([this.app], state, log);
    this.started.push(adapter);
    return adapter;
  }

  create(other: Partial<Dispatch> = {}, count = 2): Dispatch {
    return this.platform.dispatch("op_1", "instance.create", this.app, count, other);
  }

  end(other: Partial<Dispatch> = {}): Dispatch {
    return this.platform.dispatch("op_2", "instance.decommission", this.app, 2, other);
  }

  /** killed returns a copy of the state folder, as a killed process leaves it. */
  killed(): string {
    const copy = `${this.state}/killed`;
    fs.cpSync(`${this.state}/journal`, `${copy}/journal`, { recursive: true });
    fs.rmSync(`${copy}/journal/lock`);
    return copy;
  }

  calls(): string[] { return this.platform.calls.map((call) => call.name); }
}
