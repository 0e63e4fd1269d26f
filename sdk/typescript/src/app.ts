// What an app is to the engine: its description and its functions.
import type {
  Action, ActionRequest, AppInfo, Asked, Instance, Kind, Member, Observation, PlanAnswer, UsagePage,
} from "./contract.js";
import type { Run } from "./run.js";
import type { Task, TaskResult } from "./platform.js";
import type { Schema } from "./schema.js";

/** Call is what an action, an observation, a plan or a usage query has to work with. Every task of an observation is
 * a new node task; those of an action carry keys of the action, so that a repeat is the same tasks. */
export interface Call {
  instance: Instance;
  members: Member[];
  signal: AbortSignal;
  /** ask runs a node task; the result may be a failure of the task, an exception is a failure to ask. */
  ask(member: Member, step: string, task: Task, within?: AbortSignal): Promise<TaskResult>;
}

export interface AppAction extends Action { inputSchema: Schema; do(call: Call, request: ActionRequest): Promise<object> }

export interface App {
  info: AppInfo & { configSchema: Schema };
  /** check refuses what would be unsafe, before anything is done. It is quick and asks nobody. */
  check(asked: Asked): void;
  operations: Partial<Record<Kind, (run: Run) => Promise<void>>>;
  actions: AppAction[];
  observe(call: Call): Promise<Pick<Observation, "health" | "message" | "members">>;
  plan(call: Call, asked: Asked): Promise<PlanAnswer>;
  usage(call: Call, after: string): Promise<UsagePage>;
  /** pastUsage is the usage of an instance that is gone; undefined when nothing was ever metered for it. */
  pastUsage(instanceId: string, after: string): UsagePage | undefined;
}
