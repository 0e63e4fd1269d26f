// @gpuaas/adapter is what the author of an app adapter in TypeScript builds on: the adapter contract 1.1 as a server.
//
// The platform owns what an operation is: its identity, who requested it, its deadline, its audit. The adapter owns
// what it means: how one app boots, joins, drains and leaves. This kit is a convenience over docs/adapter-contract, not
// a second source of truth. The author writes an App; docs/guides/write-an-adapter-in-typescript.md walks through one.
export * from "./app.js";
export * from "./contract.js";
export { Controller, main, type Program, type Setup } from "./controller.js";
export { hide, Log, mask, type Level } from "./log.js";
export { ApiError, PlatformClient, type SecretOptions } from "./platform.js";
export { isUnreachable, Run } from "./run.js";
export { every, Interrupted, pause, signal, TimedOut, within, type Why } from "./scope.js";
export { Keys, seal } from "./seal.js";
export * as tasks from "./tasks.js";
export { shell, TaskResult, type Env, type Task } from "./tasks.js";
export { UsageLog } from "./usage.js";
