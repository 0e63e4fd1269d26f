// One-time login codes: where they stand in what a person pastes or opens; and logins at an identity provider.
import { plain } from '../api/errors';
import type { Problem } from '../api/errors';

/** Longest code that is sent; what is longer is no code. */
const maxCode = 512;

/** The code in a fragment such as `#code=abc`, a whole login link, or the bare code; empty when there is none. */
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

/** Where to go after the login: a path of the console itself, never another place. */
export function safeNext(next: unknown): string {
  if (typeof next !== 'string' || !next.startsWith('/') || next.startsWith('//') || next.includes('\\')) return '/workloads';
  return next.startsWith('/login') ? '/workloads' : next;
}

/** Where a login at the identity provider begins, and where it leads back to. */
export function providerAddress(next: unknown): string {
  return `/auth/oidc/start?returnTo=${encodeURIComponent(safeNext(next))}`;
}

/** Words for why a login at the identity provider came to nothing, by the code that it came back with. */
const refusals: Readonly<Record<string, string>> = {
  LOGIN_REFUSED: 'Your identity provider knows you, but you have no account here. Ask an administrator of your tenant to add you with the email address of that account.',
  UNAUTHENTICATED: 'The login could not be verified. Start again.',
  RATE_LIMITED: 'Too many logins failed. Wait a while, then start again.',
  UNAVAILABLE: 'The identity provider cannot be reached right now. Try again soon.',
};

/** The problem that a login at the identity provider came back with; undefined when there was none. `message` is the platform's own word, where it has one. */
export function refusalOf(code: string | undefined, message: string | undefined, correlationId: string | undefined): Problem | undefined {
  if (code === undefined || !/^[A-Z][A-Z_]{2,40}$/.test(code)) return undefined;
  const words = refusals[code] ?? 'The login failed. Start again.';
  const said = message === undefined || message === '' ? [] : [{ code, message: message.slice(0, 300), path: '' }];
  return { ...plain(code, words, (correlationId ?? '').slice(0, 128)), reasons: said };
}
