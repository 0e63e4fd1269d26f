// The identity of a dispatch: what never changes between two dispatches of one operation.
import { createHash } from "node:crypto";
import type { Dispatch, Member } from "./contract.js";

/** canonical writes JSON with sorted keys and no white space; undefined is null. */
export function canonical(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const entries = Object.entries(value).filter(([, v]) => v !== undefined).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([k, v]) => `${JSON.stringify(k)}:${canonical(v)}`).join(",")}}`;
}

/** digest returns a short hash over several texts. */
export function digest(...parts: string[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${part.length}:${part}`);
  return hash.digest("hex").slice(0, 40);
}

/** specHash omits what changes between dispatches: attempt, deadline, force, token and trace, a member's status, cordon
 * and labels, and whether its node can be reached. Fields of later versions of the contract are ignored. */
export function specHash(d: Dispatch): string {
  const i = d.instance;
  const counts = i.components.map((c) => [c.key, c.count]);
  const instance = [i.id, i.name, i.tenantId, i.projectId, i.app, i.version, i.config, counts];
  return digest(canonical([d.operationId, d.kind, instance, d.members.map(still), d.targets ?? [], d.change ?? null]));
}

function still(m: Member): unknown[] {
  const n = m.node;
  const node = [n.id, n.name, n.address, n.sealingKey, n.allocationId, n.shape, n.gpus, n.cpus, n.memoryMiB];
  return [m.id, m.componentKey, m.index, ...node];
}
