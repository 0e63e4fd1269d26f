// One form of failure: every error, in the GraphQL envelope or on the network, becomes a Problem.
import type { CombinedError } from '@urql/core';
import { faultOf, faultOfFeed, needsLogin } from '@gpuaas/client';
import type { Fault, RawError, Reason } from '@gpuaas/client';

export { needsLogin };
export type { Reason };

/** An error, ready to be shown: its message is a sentence. */
export type Problem = Fault;

/** Reports whether the platform could not be reached at all, as during a restart. */
export function isUnreachable(problem: Problem): boolean {
  return problem.code === 'NETWORK';
}

/** Returns the problem of a failed query or mutation. */
export function problemOf(error: CombinedError): Problem {
  const first = error.graphQLErrors[0];
  if (first !== undefined) return problemOfGraphQL(first);
  const response = error.response as Response | undefined;
  const correlationId = response?.headers.get('x-correlation-id') ?? '';
  if (response?.status === 401)
    return plain('UNAUTHENTICATED', 'You are not logged in, or the login has expired.', correlationId);
  if (response !== undefined && response.status >= 400 && response.status < 500) {
    return plain('REQUEST_REFUSED', `The platform refused the request (HTTP ${response.status}).`, correlationId);
  }
  return { ...plain('NETWORK', 'The platform cannot be reached right now.', correlationId), retryable: true };
}

/** Returns the problem of one error of the GraphQL envelope. */
export function problemOfGraphQL(error: RawError): Problem {
  return problemOfFault(faultOf(error));
}

/** Returns the problem that ended a subscription: from a list of GraphQL errors, a close event or an Error. */
export function problemOfSubscription(cause: unknown): Problem {
  return problemOfFault(faultOfFeed(cause));
}

/** Returns a fault as a page shows it. */
export function problemOfFault(fault: Fault): Problem {
  return { ...fault, message: sentence(fault.message) };
}

/** Returns the problem of a refused login: from the envelope where there is one, else from the HTTP status. */
export function problemOfAnswer(status: number, body: string): Problem {
  const problem = problemOfEnvelope(body);
  if (problem !== undefined)
    return needsLogin(problem)
      ? { ...problem, message: 'This code is unknown, was already used, or has expired. Ask for a new login link.' }
      : problem;
  return {
    ...plain('UNAVAILABLE', `The platform could not log you in right now (HTTP ${status}).`, ''),
    retryable: true,
  };
}

/** Returns the problem of a text that may be the envelope; undefined for any other. */
export function problemOfEnvelope(body: string): Problem | undefined {
  try {
    const first = (JSON.parse(body) as { errors?: RawError[] }).errors?.[0];
    return first === undefined ? undefined : problemOfGraphQL(first);
  } catch {
    return undefined; // something between the page and the platform has responded
  }
}

/** Returns a problem without reasons that is not retryable. */
export function plain(code: string, message: string, correlationId: string): Problem {
  return { code, message, correlationId, retryable: false, reasons: [] };
}

/** Returns the segments of a path in either notation: `input.config.a[0]`, `/config/a/0`. */
export function pathSegments(path: string): string[] {
  if (path.startsWith('/')) {
    return path
      .slice(1)
      .split('/')
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  }
  return path
    .replaceAll(/\[(\d+)\]/g, '.$1')
    .split('.')
    .filter((part) => part !== '');
}

/** Messages by field, and the reasons that belong to no field of the form. */
export interface PlacedReasons {
  readonly fields: ReadonlyMap<string, string>;
  readonly rest: readonly Reason[];
}

/**
 * Places reasons on a form's fields. A path's leading `input` is dropped; `known` reports whether the form has a field
 * of that dotted path, and the longest known prefix of a path gets the message, so that an error of a list's element is
 * shown at the list when elements have no field of their own.
 */
export function placeReasons(reasons: readonly Reason[], known: (path: string) => boolean): PlacedReasons {
  const fields = new Map<string, string>();
  const rest: Reason[] = [];
  for (const reason of reasons) {
    const field = fieldOf(reason.path, known);
    if (field === undefined) rest.push(reason);
    else fields.set(field, [fields.get(field), sentence(reason.message)].filter(Boolean).join(' '));
  }
  return { fields, rest };
}

function fieldOf(path: string, known: (path: string) => boolean): string | undefined {
  const segments = pathSegments(path);
  if (segments[0] === 'input') segments.shift();
  for (let length = segments.length; length > 0; length--) {
    const candidate = segments.slice(0, length).join('.');
    if (known(candidate)) return candidate;
  }
  return undefined;
}

/** The server's messages are lower case without a full stop; a page shows sentences. */
function sentence(message: string): string {
  const trimmed = message.trim();
  if (trimmed === '') return '';
  const capital = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?…]$/.test(capital) ? capital : `${capital}.`;
}
