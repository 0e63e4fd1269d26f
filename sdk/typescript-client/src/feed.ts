// Live feeds that survive: a subscription that resumes from its last cursor whenever the connection, the server
// or the subscription itself ends, and that starts from the beginning when its cursor has expired.
import { backoff } from './backoff.js';
import { faultOfFeed, needsLogin } from './errors.js';
import type { Fault } from './errors.js';

/** Sink takes what one subscription delivers, in the form of graphql-ws. */
export interface Sink {
  next(item: { data?: unknown; errors?: unknown }): void;
  error(cause: unknown): void;
  complete(): void;
}

/** Transport carries subscriptions. A graphql-ws client is one. */
export interface Transport {
  subscribe(payload: { query: string; variables: Record<string, unknown> }, sink: Sink): () => void;
}

/** The subscription to read, and the callbacks. */
export interface Feed<Data> {
  /** Returns the subscription's text; it is called for each attempt. */
  readonly query: string | (() => string);
  /** Reports whether a refused text has an older one, which query returns from then on. */
  readonly fallsBack?: (fault: Fault, query: string) => boolean;
  readonly variables: Readonly<Record<string, unknown>>;
  /** The cursor to begin behind. */
  readonly after?: string;
  /** Returns the cursor of an item; undefined for feeds without cursors, which start from the beginning each time. */
  readonly cursorOf?: (data: Data) => string | undefined;
  readonly onData: (data: Data) => void;
  /** The feed starts from the beginning: the items so far must be discarded. */
  readonly onRestart?: () => void;
  /** The feed has ended for good, such as for a missing permission. */
  readonly onEnd: (fault: Fault) => void;
  /** Whether an orderly completion is the end (as of an operation), or the feed is resumed (as of a timeline). */
  readonly completes?: boolean;
  /** Called on an orderly completion, when `completes` is set. */
  readonly onComplete?: () => void;
}

/** Codes after which a retry is useless. */
const finalCodes: ReadonlySet<string> = new Set([
  'FORBIDDEN',
  'NOT_FOUND',
  'PERMISSION_REVOKED',
  'INVALID_ARGUMENT',
  'FAILED_PRECONDITION',
  'DOCUMENT_INVALID',
  'DOCUMENT_TOO_LARGE',
]);

/** Codes after which the feed starts from the beginning. */
const startOverCodes: ReadonlySet<string> = new Set(['CURSOR_EXPIRED', 'CURSOR_INVALID']);

/**
 * Follows a feed until the returned function is called. The client re-sends a subscription after a reconnect; the
 * variables are read again each time, so that it requests what came after the newest item received.
 */
export function follow<Data>(transport: Transport, feed: Feed<Data>): () => void {
  let stopped = false;
  let after = feed.after;
  let failures = 0;
  let release: () => void = () => undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  let asked = '';
  const payload = {
    get query(): string {
      return (asked = typeof feed.query === 'string' ? feed.query : feed.query());
    },
    get variables(): Record<string, unknown> {
      return after === undefined ? { ...feed.variables } : { ...feed.variables, after };
    },
  };

  const again = (delay: number) => {
    if (!stopped) timer = setTimeout(start, delay);
  };

  const fail = (cause: unknown) => {
    if (stopped) return;
    const fault = faultOfFeed(cause);
    if (startOverCodes.has(fault.code)) {
      after = undefined;
      feed.onRestart?.();
    } else if (feed.fallsBack?.(fault, asked) === true) {
      again(0);
      return;
    } else if (needsLogin(fault) || finalCodes.has(fault.code)) {
      stopped = true;
      feed.onEnd(fault);
      return;
    }
    again(backoff(failures++));
  };

  const start = () => {
    let ended = false; // an error inside an item ends this attempt; later messages of it are ignored
    const end = (act: () => void) => {
      if (ended || stopped) return;
      ended = true;
      act();
    };
    release = transport.subscribe(payload, {
      next: (item) => {
        if (ended || stopped) return;
        if (item.errors !== undefined) {
          end(() => fail(item.errors));
          release();
        } else if (item.data !== null && item.data !== undefined) {
          failures = 0;
          const data = item.data as Data; // the document is typed, and the server follows its schema
          after = feed.cursorOf?.(data) ?? after;
          feed.onData(data);
        }
      },
      error: (cause) => end(() => fail(cause)),
      complete: () =>
        end(() => {
          if (feed.completes === true) {
            stopped = true;
            feed.onComplete?.();
          } else again(backoff(failures++));
        }),
    });
  };

  start();
  return () => {
    stopped = true;
    clearTimeout(timer);
    release();
  };
}
