import type { Dispatch } from "../src/contract.js";

/** dispatch is a valid one. */
export function dispatch(id = "op_1"): Dispatch {
  const node = { id: "nod_1", name: "n", address: "10.0.0.1", sealingKey: "", allocationId: "alc_1", shape: "baremetal", gpus: 0, cpus: 1, memoryMiB: 1 };
  return {
    operationId: id, kind: "member.drain", attempt: 1, deadline: "2099-01-01T00:00:00Z", correlationId: "c", targets: ["mem_1"], change: {},
    instance: { id: "ins_1", name: "one", tenantId: "ten_1", projectId: "prj_1", app: "counter", version: "1.0.0", config: { step: 1 }, components: [{ key: "counter", count: 1 }] },
    members: [{ id: "mem_1", componentKey: "counter", index: 0, status: "active", node }],
    platform: { graphqlUrl: "http://p/graphql", token: "t", tokenExpiresAt: "2099-01-01T00:00:00Z" },
  };
}
