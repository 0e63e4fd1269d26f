// The page's only WebSocket: it reconnects for ever, reports its status, and carries every live feed.
import { stringifyDocument } from '@urql/core';
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { createClient } from 'graphql-ws';
import type { Client } from 'graphql-ws';
import { backoff, follow } from '@gpuaas/client';
import type { Feed } from '@gpuaas/client';
import { problemOfFault } from './errors';
import type { Problem } from './errors';

/** The status of the connection. `epoch` grows each time it is opened: data read before may then be stale. */
export interface LiveStatus {
  readonly state: 'idle' | 'open' | 'reconnecting';
  readonly epoch: number;
  /** When the platform last answered, in milliseconds: the page shows that time's data. Undefined while connected. */
  readonly asOf?: number;
}

/** What the connection reports to its owner. */
export interface LiveHooks {
  /** The server closed the socket because the session is no longer valid. */
  readonly onSessionLost: () => void;
  /** Several attempts to reconnect have failed: the owner should find out why by other means. */
  readonly onStruggling: () => void;
}

/** Close codes of graphql-transport-ws for a missing or invalid session. */
const sessionCodes: ReadonlySet<number> = new Set([4401, 4403]);

/**
 * Milliseconds between pings; how long a pong may take before the console reports silence, together less than three
 * seconds; and before the socket is closed: a slow answer is not a reason to open another.
 */
const pingEvery = 1_500;
const quietAfter = 1_400;
const pongWithin = 6_000;

/** A live connection: subscribe to its status with useSyncExternalStore, follow feeds with follow. */
export class Live {
  private readonly client: Client;
  private readonly listeners = new Set<() => void>();
  private current: LiveStatus = { state: 'idle', epoch: 0 };
  private pongTimer: ReturnType<typeof setTimeout> | undefined;
  private quietTimer: ReturnType<typeof setTimeout> | undefined;
  private answeredAt = Date.now();

  /** Nothing is opened until the first feed is followed. webSocketImpl is for tests outside of a browser. */
  constructor(
    url: string,
    private readonly hooks: LiveHooks,
    webSocketImpl?: unknown,
  ) {
    this.client = createClient({
      url,
      ...(webSocketImpl === undefined ? {} : { webSocketImpl }),
      lazy: true,
      lazyCloseTimeout: 3_000,
      keepAlive: pingEvery,
      retryAttempts: Infinity,
      retryWait: (retries) => this.wait(retries),
      shouldRetry: (cause) => !isSessionClose(cause),
      on: {
        connected: () => this.set({ state: 'open', epoch: this.current.epoch + 1 }),
        message: () => {
          this.answeredAt = Date.now();
        },
        closed: (event) => this.closed(event),
        ping: (received) => {
          if (!received) this.expectPong();
        },
        pong: (received) => {
          if (received) this.answered();
        },
      },
    });
  }

  /** Follows a feed until the returned function is called. */
  follow<Data, Variables extends Record<string, unknown>>(
    document: TypedDocumentNode<Data, Variables>,
    variables: Variables,
    feed: Omit<Feed<Data>, 'query' | 'variables' | 'onEnd'> & { readonly onEnd: (problem: Problem) => void },
  ): () => void {
    return follow<Data>(this.client, {
      ...feed,
      onEnd: (fault) => feed.onEnd(problemOfFault(fault)),
      query: stringifyDocument(document),
      variables,
    });
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly status = (): LiveStatus => this.current;

  /** The browser has lost its network: the connection is down, though no packet has shown it yet. */
  offline(): void {
    if (this.current.state !== 'open') return;
    this.set({ state: 'reconnecting', epoch: this.current.epoch, asOf: this.answeredAt });
    this.client.terminate();
  }

  /** Opens the connection again, as after a rotation of the session's secret; feeds continue from their cursors. */
  reopen(): void {
    this.client.terminate();
  }

  /** Ends the connection and every feed on it. */
  close(): void {
    this.expectNothing();
    void this.client.dispose();
    this.set({ state: 'idle', epoch: this.current.epoch });
  }

  private async wait(retries: number): Promise<void> {
    if (retries >= 2) this.hooks.onStruggling();
    await new Promise((resolve) => setTimeout(resolve, backoff(retries)));
  }

  private closed(event: unknown): void {
    this.expectNothing();
    if (isSessionClose(event)) {
      this.set({ state: 'idle', epoch: this.current.epoch });
      this.hooks.onSessionLost();
      return;
    }
    const wanted = !(isClose(event) && event.code === 1000 && event.wasClean === true);
    this.set(
      wanted
        ? { state: 'reconnecting', epoch: this.current.epoch, asOf: this.current.asOf ?? this.answeredAt }
        : { state: 'idle', epoch: this.current.epoch },
    );
  }

  /** A peer that does not answer a ping is silent, and then counts as lost, even if the network has not noticed. */
  private expectPong(): void {
    if (this.pongTimer !== undefined) return; // the answer to an earlier ping is still expected
    this.quietTimer = setTimeout(
      () => this.set({ state: 'reconnecting', epoch: this.current.epoch, asOf: this.answeredAt }),
      quietAfter,
    );
    this.pongTimer = setTimeout(() => this.client.terminate(), pongWithin);
  }

  /** The peer has answered. What it sent meanwhile arrived before the answer, so nothing needs to be read again. */
  private answered(): void {
    this.expectNothing();
    this.answeredAt = Date.now();
    if (this.current.state === 'reconnecting') this.set({ state: 'open', epoch: this.current.epoch });
  }

  private expectNothing(): void {
    clearTimeout(this.pongTimer);
    clearTimeout(this.quietTimer);
    this.pongTimer = this.quietTimer = undefined;
  }

  private set(next: LiveStatus): void {
    this.current = next;
    for (const listener of this.listeners) listener();
  }
}

function isClose(event: unknown): event is { code: number; wasClean?: boolean } {
  return typeof (event as { code?: unknown } | null)?.code === 'number';
}

function isSessionClose(event: unknown): boolean {
  return isClose(event) && sessionCodes.has(event.code);
}
