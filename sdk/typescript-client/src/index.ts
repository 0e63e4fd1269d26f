// @gpuaas/client is the client of the platform's GraphQL API. Operations, each with its types, are in
// @gpuaas/client/operations; README.md shows their use.
export { backoff, pause } from './backoff.js';
export { Client, Submission } from './client.js';
export type { CallOptions, ClientOptions, FeedOptions, Outcome } from './client.js';
export { TypedDocument } from './document.js';
export type { Document } from './document.js';
export { faultOf, faultOfFeed, faultOfStatus, needsLogin, plainFault, PlatformError } from './errors.js';
export type { Code, Fault, RawError, Reason } from './errors.js';
export { follow } from './feed.js';
export type { Feed, Sink, Transport } from './feed.js';
export { errorCodes } from './generated/codes.js';
export type { ErrorCode } from './generated/codes.js';
export { attemptFor, newKey } from './keys.js';
export type { Attempt } from './keys.js';
export { hasEnded, OperationHandle } from './operation.js';
