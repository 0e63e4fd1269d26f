// The two ways to the platform: GraphQL by fetch with the session's cookie, and the live connection.
import { Client, cacheExchange, fetchExchange } from '@urql/core';
import { Live } from './live';
import { needsLogin, plain, problemOf, problemOfAnswer } from './errors';
import type { Problem } from './errors';
import { SessionDocument } from '../generated/graphql';

/** Queries and mutations. The cookie is HttpOnly: no script, ours included, ever sees the credential. */
export const client = new Client({
  url: '/graphql',
  exchanges: [cacheExchange, fetchExchange],
  requestPolicy: 'cache-and-network',
  preferGetMethod: false,
  fetchOptions: { credentials: 'same-origin' },
});

/** The live connection on the same host. */
export const live = new Live(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/graphql`, {
  onSessionLost: () => toLogin('expired'),
  onStruggling: () => void probe(),
});

let probing = false;

/** A handshake that is refused for want of a session looks like any other failure to a page: ask by HTTP. */
async function probe(): Promise<void> {
  if (probing) return;
  probing = true;
  const answer = await client.query(SessionDocument, {}, { requestPolicy: 'network-only' }).toPromise();
  probing = false;
  if (answer.error !== undefined && needsLogin(problemOf(answer.error))) toLogin('expired');
}

/** Leaves for the login page, which leads back here. A full load, so that nothing of the session stays in memory. */
export function toLogin(reason: 'expired' | 'out' | 'unsure' | 'none'): void {
  if (location.pathname === '/login') return;
  const next = reason === 'out' || reason === 'unsure' ? '' : `&next=${encodeURIComponent(location.pathname + location.search)}`;
  location.assign(`/login?reason=${reason}${next}`);
}

/** Redeems a one-time code for the session cookie; answers what went wrong, or undefined. */
export async function login(code: string): Promise<Problem | undefined> {
  try {
    const answer = await fetch('/auth/login', {
      method: 'POST',
      credentials: 'same-origin',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code, client: 'browser' }),
    });
    return answer.ok ? undefined : problemOfAnswer(answer.status, await answer.text());
  } catch {
    return { ...plain('NETWORK', 'The platform cannot be reached right now. The code is still valid: try again.', ''), retryable: true };
  }
}

/** Milliseconds between looks at whether the session's secret is due to be turned over. */
const refreshEvery = 15 * 60_000;

/** Has the session's secret turned over when it is old, for as long as the page is open; returns how to stop. */
export function keepFresh(): () => void {
  const timer = setInterval(() => void refreshSession(), refreshEvery);
  return () => clearInterval(timer);
}

async function refreshSession(): Promise<void> {
  const answer = await fetch('/auth/refresh', { method: 'POST', credentials: 'same-origin' }).catch(() => undefined);
  if (answer?.ok !== true) return; // the next look, or the next request, will tell
  const { rotated } = (await answer.json()) as { rotated?: boolean };
  if (rotated === true) live.reopen(); // a socket ends with the secret that it was opened with
}

/** Ends the session on the server and leaves for the login page, which says so if the server could not be reached. */
export async function logout(): Promise<void> {
  live.close();
  const reached = await fetch('/auth/logout', { method: 'POST', credentials: 'same-origin' }).then(() => true, () => false);
  toLogin(reached ? 'out' : 'unsure');
}
