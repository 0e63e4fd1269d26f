// One-time login codes: finding them in what a person pastes or opens; and logins at an identity provider.
import { plain } from '../api/errors';
import type { Problem } from '../api/errors';

/** The longest code, in characters; a longer text is not a code. */
const maxCode = 512;

/** Returns the code in a fragment such as `#code=abc`, in a login link, or the bare code; empty without a code. */
export function codeFrom(pasted: string): string {
  const trimmed = pasted.trim();
  const named = /[#&?]code=([^&\s]+)/.exec(trimmed)?.[1];
  const code = named === undefined ? trimmed : decode(named);
  return code.length <= maxCode && !/[\s#/]/.test(code) ? code : '';
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}

/** Returns where to go after the login: a path of the console itself, never another site. */
export function safeNext(next: unknown): string {
  if (typeof next !== 'string' || !next.startsWith('/') || next.startsWith('//') || next.includes('\\'))
    return '/workloads';
  return next.startsWith('/login') ? '/workloads' : next;
}

/** Returns the address that starts a login at the identity provider and leads back to `next`. */
export function providerAddress(next: unknown): string {
  return `/auth/oidc/start?returnTo=${encodeURIComponent(safeNext(next))}`;
}

/** Why a login at the identity provider failed, by the code that it returned with. */
const refusals: Readonly<Record<string, string>> = {
  LOGIN_REFUSED:
    'Your identity provider knows you, but you have no account here. Ask an administrator of your tenant to add you with the email address of that account.',
  UNAUTHENTICATED: 'The login could not be verified. Start again.',
  RATE_LIMITED: 'Too many logins failed. Wait a while, then start again.',
  UNAVAILABLE: 'The identity provider cannot be reached right now. Try again soon.',
};

/**
 * Returns the problem that a login at the identity provider returned with; undefined without a problem. `message` is
 * the platform's own message, where it has one.
 */
export function refusalOf(
  code: string | undefined,
  message: string | undefined,
  correlationId: string | undefined,
): Problem | undefined {
  if (code === undefined || !/^[A-Z][A-Z_]{2,40}$/.test(code)) return undefined;
  const words = refusals[code] ?? 'The login failed. Start again.';
  const said = message === undefined || message === '' ? [] : [{ code, message: message.slice(0, 300), path: '' }];
  return { ...plain(code, words, (correlationId ?? '').slice(0, 128)), reasons: said };
}
