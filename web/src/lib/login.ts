// One-time login codes: where they stand in what a person pastes or opens.

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
