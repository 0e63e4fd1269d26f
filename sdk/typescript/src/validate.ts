// The shape of what the platform sends. Unknown fields pass: a newer platform may send them. An invalid field is
// answered 400 and named by its path.
import {
  kinds, malformed, maxKey, maxMembers, type ActionRequest, type Artifact, type Asked, type Dispatch, type Instance,
  type Kind, type Member, type Node, type PlanRequest, type Platform, type Requester, type Volume,
} from "./contract.js";

type Json = Record<string, unknown>;

export const idPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;

function object(value: unknown, path: string): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw malformed(path, "must be an object");
  return value as Json;
}

function list(value: unknown, path: string): unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw malformed(path, "must be a list");
  return value;
}

function text(value: unknown, path: string): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw malformed(path, "must be a text");
  return value;
}

function whole(value: unknown, path: string): number {
  if (value === undefined || value === null) return 0;
  if (typeof value !== "number" || !Number.isSafeInteger(value)) throw malformed(path, "must be an integer");
  return value;
}

function flag(value: unknown, path: string): boolean {
  if (value !== undefined && value !== null && typeof value !== "boolean") throw malformed(path, "must be true or false");
  return value === true;
}

function texts(value: unknown, path: string): Record<string, string> {
  const entries = Object.entries(object(value ?? {}, path));
  return Object.fromEntries(entries.map(([name, one]) => [name, text(one, `${path}.${name}`)]));
}

function id(value: unknown, path: string): string {
  const found = text(value, path);
  if (!idPattern.test(found)) throw malformed(path, "is missing or is not an id");
  return found;
}

function readInstance(value: unknown): Instance {
  const o = object(value, "instance");
  const app = text(o["app"], "instance.app");
  if (app === "") throw malformed("instance.app", "is missing");
  const components = list(o["components"], "instance.components").map((item, n) => {
    const at = `instance.components[${n}]`;
    const c = object(item, at);
    return { key: text(c["key"], `${at}.key`), count: whole(c["count"], `${at}.count`) };
  });
  const word = (name: string): string => text(o[name], `instance.${name}`);
  return {
    id: id(o["id"], "instance.id"), name: word("name"), tenantId: word("tenantId"), projectId: word("projectId"), app,
    version: word("version"), config: o["config"] == null ? null : object(o["config"], "instance.config"), components,
    operatingMode: word("operatingMode"), controlPlaneScope: word("controlPlaneScope"),
    runtimeProfile: o["runtimeProfile"] ?? null, artifacts: list(o["artifacts"], "instance.artifacts") as Artifact[],
  };
}

function readNode(value: unknown, at: string): Node {
  const o = object(value ?? {}, at);
  const node: Node = {
    id: text(o["id"], `${at}.id`), name: text(o["name"], `${at}.name`), address: text(o["address"], `${at}.address`),
    sealingKey: text(o["sealingKey"], `${at}.sealingKey`), allocationId: text(o["allocationId"], `${at}.allocationId`),
    shape: text(o["shape"], `${at}.shape`), gpus: whole(o["gpus"], `${at}.gpus`), cpus: whole(o["cpus"], `${at}.cpus`),
    memoryMiB: whole(o["memoryMiB"], `${at}.memoryMiB`),
  };
  if (o["reachable"] !== undefined && o["reachable"] !== null) node.reachable = flag(o["reachable"], `${at}.reachable`);
  return node;
}

function readMembers(value: unknown): Member[] {
  const members = list(value, "members");
  if (members.length > maxMembers) throw malformed("members", `must not be more than ${maxMembers}`);
  const seen = new Set<string>();
  return members.map((item, n) => {
    const at = `members[${n}]`;
    const o = object(item, at);
    const own = id(o["id"], `${at}.id`);
    if (seen.has(own)) throw malformed(`${at}.id`, "is used twice");
    seen.add(own);
    return {
      id: own, componentKey: text(o["componentKey"], `${at}.componentKey`), index: whole(o["index"], `${at}.index`),
      status: text(o["status"], `${at}.status`), cordoned: flag(o["cordoned"], `${at}.cordoned`),
      labels: texts(o["labels"], `${at}.labels`), address: text(o["address"], `${at}.address`),
      ranges: texts(o["ranges"], `${at}.ranges`),
      volumes: list(o["volumes"], `${at}.volumes`) as Volume[], node: readNode(o["node"], `${at}.node`),
    };
  });
}

function readPlatform(value: unknown): Platform {
  const o = object(value ?? {}, "platform");
  const graphqlUrl = text(o["graphqlUrl"], "platform.graphqlUrl");
  const token = text(o["token"], "platform.token");
  if (graphqlUrl === "") throw malformed("platform.graphqlUrl", "is missing");
  if (token === "") throw malformed("platform.token", "is missing");
  return { graphqlUrl, token, tokenExpiresAt: text(o["tokenExpiresAt"], "platform.tokenExpiresAt") };
}

/** readAsked reads the fields that a dispatch and a plan request share. */
export function readAsked(value: unknown): Asked {
  const o = object(value, "body");
  const kind = text(o["kind"], "kind");
  if (!(kinds as readonly string[]).includes(kind)) {
    throw malformed("kind", `${JSON.stringify(kind.slice(0, 64))} is not an operation kind`);
  }
  const targets = list(o["targets"], "targets").map((t, n) => text(t, `targets[${n}]`));
  if (targets.length > maxMembers) throw malformed("targets", `must not be more than ${maxMembers}`);
  const platform = readPlatform(o["platform"]);
  const instance = readInstance(o["instance"]);
  const members = readMembers(o["members"]);
  targets.forEach((target, n) => {
    if (!members.some((m) => m.id === target)) throw malformed(`targets[${n}]`, "is not one of members");
  });
  return {
    kind: kind as Kind, correlationId: text(o["correlationId"], "correlationId"), instance, members, targets,
    change: o["change"] ?? null, force: flag(o["force"], "force"), platform,
  };
}

export function readDispatch(value: unknown, pathId: string): Dispatch {
  const o = object(value, "body");
  const operationId = id(o["operationId"], "operationId");
  if (operationId !== pathId) throw malformed("operationId", "is not the id of the path");
  const attempt = readAttempt(o);
  const deadline = text(o["deadline"], "deadline");
  if (Number.isNaN(Date.parse(deadline))) throw malformed("deadline", "is missing or not a time");
  return { ...readAsked(o), operationId, attempt, deadline, traceparent: text(o["traceparent"], "traceparent") };
}

export function readAttempt(value: unknown): number {
  const attempt = whole(object(value, "body")["attempt"], "attempt");
  if (attempt < 1) throw malformed("attempt", "must be at least 1");
  return attempt;
}

export function readAction(value: unknown, pathId: string): ActionRequest {
  const o = object(value, "body");
  const instance = readInstance(o["instance"]);
  if (instance.id !== pathId) throw malformed("instance.id", "is not the id of the path");
  const idempotencyKey = text(o["idempotencyKey"], "idempotencyKey");
  if (idempotencyKey === "" || Buffer.byteLength(idempotencyKey) > maxKey) {
    throw malformed("idempotencyKey", `must be 1 to ${maxKey} bytes`);
  }
  return {
    input: o["input"] ?? {}, idempotencyKey, instance, members: readMembers(o["members"]),
    platform: readPlatform(o["platform"]),
    requester: readRequester(o["requester"]),
  };
}

function readRequester(value: unknown): Requester {
  const o = object(value ?? {}, "requester");
  const read = {
    id: text(o["id"], "requester.id"), kind: text(o["kind"], "requester.kind"),
    projectId: text(o["projectId"], "requester.projectId"),
  };
  if (o["posix"] === undefined || o["posix"] === null) return read;
  const at = "requester.posix";
  const account = object(o["posix"], at);
  return {
    ...read, posix: {
      name: text(account["name"], `${at}.name`), uid: whole(account["uid"], `${at}.uid`),
      gid: whole(account["gid"], `${at}.gid`),
    },
  };
}

/** readPlan reads the body of a plan request. */
export function readPlan(value: unknown): PlanRequest {
  const asked = readAsked(value);
  const choose = object(value, "body")["choose"];
  if (choose === undefined || choose === null) return asked;
  const o = object(choose, "choose");
  const count = whole(o["count"], "choose.count");
  if (count < 1 || count > (asked.targets ?? []).length) {
    throw malformed("choose.count", "must be at least 1 and at most the number of targets");
  }
  return { ...asked, choose: { componentKey: text(o["componentKey"], "choose.componentKey"), count } };
}
