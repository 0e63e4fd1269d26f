// The app counter: every member is a process that counts, and runs batches beside it.
import type { App } from "../kit/app.js";
import { refuse, type Asked, type ComponentCount } from "../kit/contract.js";
import { actions, observe, plan } from "./ask.js";
import { add, cordon, create, decommissioning, drain, label, recover, removing, replacing, uncordon } from "./members.js";
import { component } from "./node.js";
import { change } from "./upgrade.js";
import { Meter } from "./usage.js";

const bounds = { key: component, displayName: "Counter", min: 1, max: 16, default: 2 };

export function counter(usageDir: string): App {
  const meter = new Meter(usageDir);
  const operations: App["operations"] = {
    "instance.create": create, "instance.decommission": decommissioning(meter), "instance.upgrade": change, "instance.rollback": change,
    "members.add": add, "member.drain": drain, "member.cordon": cordon, "member.uncordon": uncordon, "member.label": label,
    "member.remove": removing(meter), "member.replace": replacing(meter), "member.recover": recover,
  };
  return {
    info: {
      slug: "counter", components: [bounds], operations: Object.keys(operations).sort() as App["info"]["operations"],
      configSchema: {
        type: "object", additionalProperties: false,
        properties: { step: { type: "integer", title: "Step", description: "By how much a counter goes on every second.", minimum: 1, maximum: 1000, default: 1 } },
      },
      actions: actions.map(({ do: _, ...action }) => action), usageDimensions: [{ name: "counts", unit: "count" }],
    },
    check, operations, actions, observe, plan,
    usage: (call, after) => meter.usage(call, after),
    pastUsage: (id, after) => meter.past(id, after),
  };
}

/** check refuses what the app does not know or could not survive. */
function check(asked: Asked): void {
  asked.members.forEach((m, n) => {
    if (m.componentKey !== component) throw refuse("UNKNOWN_COMPONENT", `members[${n}].componentKey`, `counter has no component ${JSON.stringify(m.componentKey)}`);
  });
  if (asked.kind !== "instance.decommission") asked.instance.components.forEach(checkCount);
  const dispatched = "operationId" in asked;
  if (dispatched && asked.kind.startsWith("member") && (asked.targets ?? []).length === 0) throw refuse("TARGET_MISSING", "targets", `${asked.kind} needs a member`);
  if (asked.kind === "instance.upgrade" || asked.kind === "instance.rollback") checkVersion(asked);
  if (dispatched && asked.kind === "member.replace") checkReplacement(asked);
}

function checkCount(count: ComponentCount, n: number): void {
  const path = `instance.components[${n}]`;
  if (count.key !== component) throw refuse("UNKNOWN_COMPONENT", `${path}.key`, `counter has no component ${JSON.stringify(count.key)}`);
  if (count.count < bounds.min) throw refuse("BELOW_MINIMUM", `${path}.count`, `${count.count} counters would be left, and ${bounds.min} is needed`);
  if (count.count > bounds.max) throw refuse("ABOVE_MAXIMUM", `${path}.count`, `${count.count} counters are more than ${bounds.max}`);
}

function checkVersion(asked: Asked): void {
  const change = asked.change as { from?: { version?: unknown }; to?: { version?: unknown } } | null;
  if (typeof change?.from?.version !== "string") throw refuse("CHANGE_INVALID", "change.from.version", "is missing");
  if (change.to?.version !== asked.instance.version) throw refuse("VERSION_MISMATCH", "change.to.version", "is not the version of the instance");
}

function checkReplacement(asked: Asked): void {
  const id = (asked.change as { replacementId?: unknown } | null)?.replacementId;
  if (!asked.members.some((m) => m.id === id)) throw refuse("REPLACEMENT_UNKNOWN", "change.replacementId", "is not one of members");
}
