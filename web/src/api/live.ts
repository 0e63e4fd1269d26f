// The page's only WebSocket: it reconnects for ever, reports its status, and carries every live feed.
import { stringifyDocument } from '@urql/core';
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { createClient } from 'graphql-ws';
import type { Client } from 'graphql-ws';
import { backoff, follow } from './resume';
import type { Feed } from './resume';

/** The status of the connection. `epoch` grows each time it is opened: data read before may then be stale. */
export interface LiveStatus {
  readonly state: 'idle' | 'open' | 'reconnecting';
  readonly epoch: number;
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

/** Milliseconds between pings, and how long a pong may take before the socket is closed. */
const pingEvery = 12_000;
const pongWithin = 6_000;

/** A live connection: subscribe to its status with useSyncExternalStore, follow feeds with follow. */
export class Live {
  private readonly client: Client;
  private readonly listeners = new Set<() => void>();
  private current: LiveStatus = { state: 'idle', epoch: 0 };
  private pongTimer: ReturnType<typeof setTimeout> | undefined;

  /** Nothing is opened until the first feed is followed. webSocketImpl is for tests outside of a browser. */
  constructor(url: string, private readonly hooks: LiveHooks, webSocketImpl?: unknown) {
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
        closed: (event) => this.closed(event),
        ping: (received) => { if (!received) this.expectPong(); },
        pong: (received) => { if (received) clearTimeout(this.pongTimer); },
      },
    });
  }

  /** Follows a feed until the returned function is called. */
  follow<Data, Variables extends Record<string, unknown>>(
    document: TypedDocumentNode<Data, Variables>,
    variables: Variables,
    feed: Omit<Feed<Data>, 'query' | 'variables'>,
  ): () => void {
    return follow<Data>(this.client, { ...feed, query: stringifyDocument(document), variables });
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly status = (): LiveStatus => this.current;

  /** Opens the connection again, as after a rotation of the session's secret; feeds continue from their cursors. */
  reopen(): void {
    this.client.terminate();
  }

  /** Ends the connection and every feed on it. */
  close(): void {
    clearTimeout(this.pongTimer);
    void this.client.dispose();
    this.set({ ...this.current, state: 'idle' });
  }

  private async wait(retries: number): Promise<void> {
    if (retries >= 2) this.hooks.onStruggling();
    await new Promise((resolve) => setTimeout(resolve, backoff(retries)));
  }

  private closed(event: unknown): void {
    clearTimeout(this.pongTimer);
    if (isSessionClose(event)) {
      this.set({ ...this.current, state: 'idle' });
      this.hooks.onSessionLost();
      return;
    }
    const wanted = !(isClose(event) && event.code === 1000 && event.wasClean === true);
    this.set({ ...this.current, state: wanted ? 'reconnecting' : 'idle' });
  }

  /** A peer that does not answer a ping is considered lost, even if the network has not noticed. */
  private expectPong(): void {
    clearTimeout(this.pongTimer);
    this.pongTimer = setTimeout(() => this.client.terminate(), pongWithin);
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
