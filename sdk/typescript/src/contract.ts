// The wire types of the adapter contract 1.1, as docs/adapter-contract/openapi.yaml has them, and its bounds.

export const contractVersions = ["1.1", "1.0"];

export const kinds = [
  "instance.create", "instance.decommission", "instance.upgrade", "instance.rollback", "members.add", "member.drain",
  "member.cordon", "member.uncordon", "member.label", "member.remove", "member.replace", "member.recover",
] as const;
export type Kind = (typeof kinds)[number];
export type State = "accepted" | "running" | "succeeded" | "failed" | "canceled";
export type MemberStatus = "joining" | "active" | "draining" | "drained" | "removed" | "failed";
export type Health = "healthy" | "degraded" | "unhealthy" | "unknown";
export type Owner = "adapter" | "platform" | "user" | "node";
export type Verdict = "safe" | "unsafe" | "unknown";

/** Bounds of the contract; sizes in bytes. */
export const maxBody = 1 << 20;
export const maxPage = 500;
export const maxWaitSeconds = 30;
export const maxMembers = 1024;
export const maxDetail = 4 << 10;
export const maxMessage = 2 << 10;
export const maxEvidence = 64 << 10;
export const maxUsageRecords = 1000;
export const maxWork = 100;
export const maxReasons = 50;
export const maxKey = 200;
export const maxToken = 8 << 10;
export const maxSealed = 256 << 10;

export const healths: ReadonlySet<string> = new Set(["healthy", "degraded", "unhealthy", "unknown"]);
export const memberStatuses: ReadonlySet<string> =
  new Set(["joining", "active", "draining", "drained", "removed", "failed"]);
export const verdicts: ReadonlySet<string> = new Set(["safe", "unsafe", "unknown"]);
/** What is only removed keeps its config unchecked. */
export const takesAway: ReadonlySet<string> = new Set(["instance.decommission", "member.remove"]);

export interface Component { key: string; displayName: string; min: number; max: number; default: number }
export interface Action {
  name: string; displayName: string; permissionKey: string; risk: "read" | "write" | "destructive";
  inputSchema: object; outputSchema: object;
}
export interface UsageDimension { name: string; unit: string }
export interface AppInfo {
  slug: string; components: Component[]; operations: Kind[]; configSchema: object | null; actions: Action[];
  usageDimensions: UsageDimension[]; choosesLeaving?: boolean;
}
export interface Description { contractVersions: string[]; name: string; build: string; apps: AppInfo[] }

export interface ComponentCount { key: string; count: number }
export interface Instance {
  id: string; name: string; tenantId: string; projectId: string; app: string; version: string;
  config?: unknown; components: ComponentCount[]; operatingMode?: string; controlPlaneScope?: string;
  runtimeProfile?: unknown; artifacts?: Artifact[];
}
export interface Artifact { name: string; digest: string; mediaType: string }
/** Settings are the config of an instance, valid by the app's schema. */
export type Settings = Readonly<Record<string, unknown>>;
export interface Node {
  id: string; name: string; address: string; sealingKey: string; allocationId: string; shape: string;
  gpus: number; cpus: number; memoryMiB: number; reachable?: boolean;
}
export interface Member {
  id: string; componentKey: string; index: number; status: string; cordoned?: boolean;
  labels?: Record<string, string>; address?: string; ranges?: Record<string, string>; volumes?: Volume[]; node: Node;
}
/** A Volume holds files that outlast the member that mounts it at its path, in a slot of the manifest. */
export interface Volume { slot: string; id: string; path: string; readOnly?: boolean }

/** Where other members of the instance reach a member: at its own address, or else at its node's. */
export function host(member: Member): string { return member.address || member.node.address; }

/** nameOf is the component and the index, such as "peer-0". */
export function nameOf(member: Member): string { return `${member.componentKey}-${member.index}`; }

/** of returns the members of one component, in the order of their indexes. */
export function of(members: readonly Member[], component: string): Member[] {
  return members.filter((m) => m.componentKey === component).sort((a, b) => a.index - b.index);
}
export interface Platform { graphqlUrl: string; token: string; tokenExpiresAt: string }

/** The fields that a dispatch and a plan request share. */
export interface Asked {
  kind: Kind; correlationId: string; instance: Instance; members: Member[]; targets?: string[]; change?: unknown;
  force?: boolean; platform: Platform;
}
/** PlanRequest requests what an operation would do, or with choose, which of the targets leave. */
export interface PlanRequest extends Asked { choose?: { componentKey: string; count: number } }
export interface Dispatch extends Asked { operationId: string; attempt: number; deadline: string; traceparent?: string }

export interface Work {
  kind: string; id: string; name: string; memberId?: string; owner: string; since: string; message: string;
}
export interface MemberUpdate { id: string; status: MemberStatus; health: Health; detail?: object }
export interface OperationError { code: string; message: string; owner: Owner; retryable: boolean }
export interface Status {
  operationId: string; attempt: number; state: State; phase: string; percent: number; message: string;
  members: MemberUpdate[]; evidence?: Record<string, unknown>; error?: OperationError; waitsFor?: Work[];
}
export interface OperationsPage { epoch: string; cursor: string; operations: Status[] }
export interface CancelResult { outcome: "canceled" | "too_late" | "unknown"; message: string; tombstone?: boolean }

export interface MemberObservation { id: string; health: Health; message: string; status?: "failed" }
export interface Observation {
  instanceId: string; health: Health; message: string; members: MemberObservation[]; observedAt: string;
}
/** The account of a person or a service account in the instance's tenant; it never changes. */
export interface PosixIdentity { name: string; uid: number; gid: number }
/** posix is set if the manifest requires identities and the requester is a person or a service account. */
export interface Requester { id: string; kind: string; projectId: string; posix?: PosixIdentity }
export interface ActionRequest {
  input: unknown; idempotencyKey: string; requester: Requester;
  instance: Instance;
  members: Member[]; platform: Platform;
}
export interface UsageRecord {
  id: string; dimension: string; memberId?: string; quantity: string; from: string; to: string;
}
export interface UsagePage { cursor: string; count?: number; records: UsageRecord[] }
export interface PlanReason { code: string; message: string; path?: string }
export interface PlanAnswer {
  verdict: Verdict; reversible: boolean; reasons: PlanReason[]; workLost: Work[]; workTotal: number; message: string;
  chosen?: string[];
}
export interface ErrorBody { code: string; message: string; path?: string; retryable?: boolean }

export function ended(state: State): boolean {
  return state === "succeeded" || state === "failed" || state === "canceled";
}

/** Refusal is an answer that is not a success: an HTTP status and the contract's error body. */
export class Refusal extends Error {
  constructor(readonly status: number, readonly body: ErrorBody) { super(`${body.code}: ${body.message}`); }
}

/** missing returns the refusal for an object that does not exist here: 404. */
export function missing(what: string): Refusal {
  return new Refusal(404, { code: "NOT_FOUND", message: `no such ${what}` });
}

/** refuse returns the refusal for a valid request that the app refuses for a reason of its own: 422. */
export function refuse(code: string, path: string, message: string): Refusal {
  return new Refusal(422, { code, message, path });
}

/** malformed returns the refusal for a request that breaks the contract's shape: 400, naming the field. */
export function malformed(path: string, message: string): Refusal {
  return new Refusal(400, { code: "INVALID_ARGUMENT", message: `${path} ${message}`, path });
}

/** Failure is how an operation fails: with a code, its owner, who has to fix it, and whether a retry may work. */
export class Failure extends Error {
  constructor(readonly code: string, readonly owner: Owner, readonly retryable: boolean, message: string) {
    super(message);
  }

  /** body is the contract's OperationError. */
  body(): OperationError {
    const { code, owner, retryable } = this;
    return { code, message: clip(this.message, maxMessage), owner, retryable };
  }
}

/** clip cuts a text to so many bytes without splitting a character. */
export function clip(text: string, limit: number): string {
  const raw = Buffer.from(text);
  if (raw.length <= limit) return text;
  let end = limit;
  while (end > 0 && ((raw[end] ?? 0) & 0xc0) === 0x80) end--;
  return raw.subarray(0, end).toString();
}

/** sizeOf returns how many bytes a value has as JSON. */
export function sizeOf(value: unknown): number { return Buffer.byteLength(JSON.stringify(value) ?? "null"); }

/** boundWork returns the first pieces of work, with their texts cut to the contract's bounds. */
export function boundWork(work: readonly Work[]): Work[] {
  return work.slice(0, maxWork).map((one) => ({
    ...one, kind: clip(one.kind, 200), id: clip(one.id, 200), name: clip(one.name, 200), owner: clip(one.owner, 200),
    message: clip(one.message, 500),
  }));
}

/** reachable reports whether a member's node could be reached when the platform sent this. */
export function reachable(member: Member): boolean { return member.node.reachable !== false; }

/** targetsOf returns the members that a dispatch or a plan acts on. */
export function targetsOf(asked: Pick<Asked, "members" | "targets">): Member[] {
  return asked.members.filter((m) => (asked.targets ?? []).includes(m.id));
}
