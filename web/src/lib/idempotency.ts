// Idempotency keys, which make a retry of a submission harmless: the client's own.
export { attemptFor, newKey } from '@gpuaas/client';
export type { Attempt } from '@gpuaas/client';
