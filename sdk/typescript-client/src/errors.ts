// One form of failure: a refusal in the GraphQL envelope, an HTTP status, and an answer that never arrived.
import type { ErrorCode } from './generated/codes.js';

/** Code is one of the platform's catalogue, or one that a newer platform sends. */
export type Code = ErrorCode | (string & {});

/** Reason is a cause of a refusal, with the path of the input field where there is one. */
export interface Reason {
  readonly code: Code;
  readonly message: string;
  readonly path: string;
}

/** Fault is the content of a refusal. correlationId is empty when the request never reached the platform. */
export interface Fault {
  readonly code: Code;
  readonly message: string;
  readonly correlationId: string;
  /** traceId is set where the installation sends traces. */
  readonly traceId?: string | undefined;
  readonly retryable: boolean;
  readonly reasons: readonly Reason[];
}

/** RawError is a GraphQL error in a response or in a subscription's error message. */
export interface RawError {
  readonly message: string;
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
}

/** PlatformError is thrown by a call that did not succeed. Switch on its code. */
export class PlatformError extends Error implements Fault {
  readonly code: Code;
  readonly correlationId: string;
  readonly traceId: string | undefined;
  readonly retryable: boolean;
  readonly reasons: readonly Reason[];
  /** retryAfter is how many seconds to wait before a retry, as the platform states; 0 where it does not. */
  readonly retryAfter: number;

  constructor(fault: Fault, options: { cause?: unknown; retryAfter?: number } = {}) {
    super(fault.message, options);
    this.name = 'PlatformError';
    this.code = fault.code;
    this.correlationId = fault.correlationId;
    this.traceId = fault.traceId;
    this.retryable = fault.retryable;
    this.reasons = fault.reasons;
    this.retryAfter = options.retryAfter ?? 0;
  }
}

/** faultOf reads one error of the GraphQL envelope. */
export function faultOf(error: RawError): Fault {
  const extensions = error.extensions ?? {};
  const traceId = text(extensions['trace_id']);
  return {
    code: text(extensions['code']) || 'INTERNAL',
    message: error.message,
    correlationId: text(extensions['correlation_id']),
    ...(traceId === '' ? {} : { traceId }),
    retryable: extensions['retryable'] === true,
    reasons: Array.isArray(extensions['reasons']) ? extensions['reasons'].map(reasonOf) : [],
  };
}

/** plainFault returns a fault without reasons. */
export function plainFault(code: Code, message: string, correlationId = '', retryable = false): Fault {
  return { code, message, correlationId, retryable, reasons: [] };
}

/** faultOfStatus returns the fault of an answer without an envelope; undefined for a success. */
export function faultOfStatus(status: number, correlationId: string): Fault | undefined {
  if (status === 401) return plainFault('UNAUTHENTICATED', 'the credential is missing or has expired', correlationId);
  if (status === 429) return plainFault('RATE_LIMITED', 'too many requests', correlationId, true);
  if (status >= 500) return plainFault('UNAVAILABLE', `the platform answers ${status}`, correlationId, true);
  if (status >= 400) return plainFault('REQUEST_INVALID', `the platform answers ${status}`, correlationId);
  return undefined;
}

/** faultOfFeed reads what ended a subscription: a list of GraphQL errors, a close event, or anything else. */
export function faultOfFeed(cause: unknown): Fault {
  if (Array.isArray(cause) && cause.length > 0) return faultOf(cause[0] as RawError);
  const code = (cause as { code?: unknown } | null)?.code;
  if (code === 4401 || code === 4403) return plainFault('UNAUTHENTICATED', 'the session has ended');
  return plainFault('NETWORK', 'the live connection was lost', '', true);
}

/** Codes that require a new login. */
const loginCodes: ReadonlySet<string> = new Set<Code>(['UNAUTHENTICATED', 'TOKEN_EXPIRED']);

/** needsLogin reports whether only a new credential helps. */
export function needsLogin(fault: Pick<Fault, 'code'>): boolean {
  return loginCodes.has(fault.code);
}

function reasonOf(raw: unknown): Reason {
  const reason = (raw ?? {}) as Record<string, unknown>;
  return { code: text(reason['code']), message: text(reason['message']), path: text(reason['path']) };
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
