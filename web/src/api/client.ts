// The two ways to the platform: GraphQL by fetch with the session's cookie, and the live connection.
import { Client, cacheExchange, fetchExchange } from '@urql/core';
import { Client as Api } from '@gpuaas/client';
import { Live } from './live';
import { needsLogin, plain, problemOf, problemOfAnswer } from './errors';
import type { Problem } from './errors';
import { SessionDocument } from '../generated/graphql';

/** The platform's client, on the page's own host. */
const api = new Api({ url: '' });

/** Returns a new W3C trace context for each request: the platform links its trace to it, so each leads to the other. */
export function traceparent(): string {
  const raw = crypto.getRandomValues(new Uint8Array(24));
  const hex = Array.from(raw, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return `00-${hex.slice(0, 32)}-${hex.slice(32)}-01`;
}

function traced(headers: HeadersInit | undefined): Headers {
  const all = new Headers(headers);
  all.set('traceparent', traceparent());
  return all;
}

/** Queries and mutations: urql caches, the platform's client sends. The cookie is HttpOnly: no script can read it. */
export const client = new Client({
  url: '/graphql',
  exchanges: [cacheExchange, fetchExchange],
  requestPolicy: 'cache-and-network',
  preferGetMethod: false,
  fetch: (_url, init) => api.post(init?.body as string, { headers: traced(init?.headers), signal: init?.signal }),
});

/** The live connection on the same host. */
export const live = new Live(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/graphql`, {
  onSessionLost: () => toLogin('expired'),
  onStruggling: () => void probe(),
});

window.addEventListener('offline', () => live.offline());

let probing = false;

/** A page cannot distinguish a handshake refused for a missing session from another failure, so this asks over HTTP. */
async function probe(): Promise<void> {
  if (probing) return;
  probing = true;
  const answer = await client.query(SessionDocument, {}, { requestPolicy: 'network-only' }).toPromise();
  probing = false;
  if (answer.error !== undefined && needsLogin(problemOf(answer.error))) toLogin('expired');
}

/** Opens the login page, which leads back here. A full page load, so that no part of the session stays in memory. */
export function toLogin(reason: 'expired' | 'out' | 'unsure' | 'none'): void {
  if (location.pathname === '/login') return;
  const next =
    reason === 'out' || reason === 'unsure' ? '' : `&next=${encodeURIComponent(location.pathname + location.search)}`;
  location.assign(`/login?reason=${reason}${next}`);
}

/** Redeems a one-time code for the session cookie; returns the problem, or undefined on success. */
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
    return {
      ...plain('NETWORK', 'The platform cannot be reached right now. The code is still valid: try again.', ''),
      retryable: true,
    };
  }
}

/** Milliseconds between checks whether the session's secret is due for rotation. */
const refreshEvery = 15 * 60_000;

/** Rotates the session's secret when it is due, as long as the page is open; returns a function that stops this. */
export function keepFresh(): () => void {
  const timer = setInterval(() => void refreshSession(), refreshEvery);
  return () => clearInterval(timer);
}

async function refreshSession(): Promise<void> {
  const answer = await fetch('/auth/refresh', { method: 'POST', credentials: 'same-origin' }).catch(() => undefined);
  if (answer?.ok !== true) return; // the next check, or the next request, will show whether the session has ended
  const { rotated } = (await answer.json()) as { rotated?: boolean };
  if (rotated === true) live.reopen(); // a socket ends with the secret that it was opened with
}

/** Ends the session on the server and opens the login page, which reports when the server could not be reached. */
export async function logout(): Promise<void> {
  live.close();
  const reached = await fetch('/auth/logout', { method: 'POST', credentials: 'same-origin' }).then(
    () => true,
    () => false,
  );
  toLogin(reached ? 'out' : 'unsure');
}
