// The client: one call is one request.
import { backoff, pause } from './backoff.js';
import type { Document } from './document.js';
import { faultOf, faultOfStatus, plainFault, PlatformError } from './errors.js';
import type { RawError } from './errors.js';
import { follow } from './feed.js';
import type { Transport } from './feed.js';
import { attemptFor } from './keys.js';
import type { Attempt } from './keys.js';
import { OperationHandle } from './operation.js';
import { socketTransport } from './socket.js';
import type { WebSocketClass } from './socket.js';

const callTimeout = 45_000; // longer than any wait the API offers
const maxRetryAfter = 60; // seconds

/** ClientOptions state where the platform is and who calls. */
export interface ClientOptions {
  /** url is the platform's address, such as https://gpu.example.com; in a page, '' is the page's own. */
  readonly url: string;
  /** token is a session token or service-account key, or what returns one for each request. Without, cookies count. */
  readonly token?: string | (() => string | Promise<string>);
  readonly fetch?: typeof globalThis.fetch;
  /** transport carries subscriptions, such as a client of graphql-ws; without it, each has a connection of its own. */
  readonly transport?: Transport;
  /** webSocket is the class of connections where the runtime has none, such as Node before 22. */
  readonly webSocket?: WebSocketClass;
  /** older is the module older: operations as platforms of version 1 serve them, sent where newer ones are refused. */
  readonly older?: Readonly<Record<string, string>>;
}

/** CallOptions are the options of one request. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly correlationId?: string;
}

/** Outcome is the result of one request: the envelope's parts, and the HTTP response. */
export interface Outcome<Data> {
  readonly data?: Data | null;
  readonly errors?: readonly RawError[];
  readonly response: Response;
}

/** Feed holds the options for reading a subscription. */
export interface FeedOptions<Data> {
  /** cursorOf returns the cursor of an item; a feed without it starts from the beginning after each interruption. */
  readonly cursorOf?: (data: Data) => string | undefined;
  /** after is the cursor to go on behind. */
  readonly after?: string;
  /** restarted is called where the cursor has expired: the feed begins again, and what was read must be discarded. */
  readonly restarted?: () => void;
  /** completes states that an orderly completion is the end, as of an operation; else the feed is resumed. */
  readonly completes?: boolean;
  readonly signal?: AbortSignal;
}

export class Client {
  private socket: Transport | undefined;
  private readonly behind = new Set<string>(); // operations that this platform knows in their older form alone

  constructor(private readonly options: ClientOptions) {
    this.socket = options.transport;
  }

  /** send makes one request and returns its outcome; it throws what fetch throws. */
  async send<Data, Variables extends object>(
    document: Document<Data, Variables>,
    variables: Variables,
    o: CallOptions = {},
  ): Promise<Outcome<Data>> {
    const response = await this.post(JSON.stringify({ query: this.textOf(document.toString()), variables }), {
      headers: o.correlationId === undefined ? {} : { 'x-correlation-id': o.correlationId },
      signal: AbortSignal.any([AbortSignal.timeout(callTimeout), ...(o.signal === undefined ? [] : [o.signal])]),
    });
    const envelope = envelopeOf<Data>(await response.text());
    return { ...envelope, response };
  }

  /** post sends one body to the API, with the credential: for libraries that build and read bodies themselves. */
  async post(body: string, o: { headers?: HeadersInit; signal?: AbortSignal | null } = {}): Promise<Response> {
    const headers = new Headers(o.headers);
    headers.set('content-type', 'application/json');
    const token = await this.token();
    if (token !== '') headers.set('authorization', `Bearer ${token}`);
    const url = `${this.options.url.replace(/\/+$/, '')}/graphql`;
    const init = { method: 'POST', redirect: 'error', credentials: 'same-origin', headers, body } as const;
    return (this.options.fetch ?? globalThis.fetch)(url, { ...init, signal: o.signal ?? null });
  }

  /**
   * request makes one request and returns its data, or throws a PlatformError. It repeats nothing: see repeat. Only where
   * an older platform refused the document and `older` is given is it sent again: a document that is refused did nothing.
   */
  async request<Data, Variables extends object>(
    document: Document<Data, Variables>,
    variables: Variables,
    o: CallOptions = {},
  ): Promise<Data> {
    const asked = this.textOf(document.toString());
    try {
      return await this.once(document, variables, o);
    } catch (error) {
      if (!(error instanceof PlatformError) || !this.fallsBack(document.toString(), error.code, asked)) throw error;
      return this.once(document, variables, o);
    }
  }

  private async once<Data, Variables extends object>(
    document: Document<Data, Variables>,
    variables: Variables,
    o: CallOptions,
  ): Promise<Data> {
    let outcome: Outcome<Data>;
    try {
      outcome = await this.send(document, variables, o);
    } catch (cause) {
      o.signal?.throwIfAborted();
      throw new PlatformError(plainFault('NETWORK', 'the platform cannot be reached', '', true), { cause });
    }
    const { data, errors, response } = outcome;
    const correlation = response.headers.get('x-correlation-id') ?? '';
    const retryAfter = secondsOf(response.headers.get('retry-after'));
    const first = errors?.[0];
    if (first !== undefined) throw new PlatformError(faultOf(first), { retryAfter });
    const refused = faultOfStatus(response.status, correlation);
    if (refused !== undefined) throw new PlatformError(refused, { retryAfter });
    if (data === undefined || data === null) {
      throw new PlatformError(plainFault('INTERNAL', 'the platform returned no data', correlation));
    }
    return data;
  }

  /**
   * repeat calls work until it succeeds, is refused for good, or has been tried as often as the limit. Give it a query,
   * or a mutation whose input has an idempotency key created outside of work, so that each try is the same submission.
   */
  async repeat<T>(work: () => Promise<T>, o: { attempts?: number; signal?: AbortSignal } = {}): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        const passing = error instanceof PlatformError && error.retryable;
        if (!passing || attempt + 1 >= (o.attempts ?? 5)) throw error;
        await pause(Math.max(backoff(attempt), 1000 * error.retryAfter), o.signal);
      }
    }
  }

  /** submission returns a function that sends a mutation with an idempotency key; see Submission. */
  submission<Data, Input extends { idempotencyKey: string }>(
    document: Document<Data, { input: Input }>,
  ): Submission<Data, Input> {
    return new Submission((input, o) => this.request(document, { input }, o));
  }

  /** operation returns the handle of an operation by its id, also of an operation that another program began. */
  operation(id: string): OperationHandle {
    return new OperationHandle(this, id);
  }

  /**
   * subscribe reads a feed: for await (const item of client.subscribe(...)). It survives connections and servers: it
   * goes on behind the cursor of the last item. It throws a PlatformError that a retry cannot mend.
   */
  async *subscribe<Data, Variables extends object>(
    document: Document<Data, Variables>,
    variables: Variables,
    o: FeedOptions<Data> = {},
  ): AsyncGenerator<Data, void, undefined> {
    const queue: Data[] = [];
    let ended: { error?: Error } | undefined;
    let wake: () => void = () => undefined;
    const end = (error?: Error) => {
      ended ??= error === undefined ? {} : { error };
      wake();
    };
    const abort = () => end(o.signal?.reason as Error);
    if (o.signal?.aborted === true) abort();
    o.signal?.addEventListener('abort', abort, { once: true });
    const stop = follow<Data>(this.transport(), {
      query: () => this.textOf(document.toString()),
      fallsBack: (fault, asked) => this.fallsBack(document.toString(), fault.code, asked),
      variables: { ...variables } as Record<string, unknown>,
      ...(o.after === undefined ? {} : { after: o.after }),
      ...(o.cursorOf === undefined ? {} : { cursorOf: o.cursorOf }),
      completes: o.completes === true,
      onData: (data) => {
        queue.push(data);
        wake();
      },
      onRestart: () => {
        queue.length = 0;
        o.restarted?.();
      },
      onEnd: (fault) => end(new PlatformError(fault)),
      onComplete: () => end(),
    });
    try {
      for (;;) {
        const next = queue.shift();
        if (next !== undefined) yield next;
        else if (ended?.error !== undefined) throw ended.error;
        else if (ended !== undefined) return;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      o.signal?.removeEventListener('abort', abort);
      stop();
    }
  }

  /** textOf returns the text of a document in the form that this platform knows. */
  private textOf(text: string): string {
    const name = nameOf(text);
    return (this.behind.has(name) ? this.options.older?.[name] : undefined) ?? text;
  }

  /** fallsBack notes that a text was refused as unknown, and reports whether there is an older one. */
  private fallsBack(text: string, code: string, asked: string): boolean {
    const name = nameOf(text);
    const less = this.options.older?.[name];
    if (code !== 'DOCUMENT_INVALID' || less === undefined || less === asked) return false;
    this.behind.add(name);
    return true;
  }

  private transport(): Transport {
    if (this.socket !== undefined) return this.socket;
    const made = this.options.webSocket ?? (globalThis as { WebSocket?: unknown }).WebSocket;
    if (made === undefined) {
      throw new Error('this runtime has no WebSocket: give one in the option webSocket');
    }
    const base = this.options.url === '' ? globalThis.location.origin : this.options.url;
    const url = `${base.replace(/^http/, 'ws').replace(/\/+$/, '')}/graphql`;
    return (this.socket = socketTransport(url, made as WebSocketClass, () => this.token()));
  }

  private async token(): Promise<string> {
    const { token } = this.options;
    return typeof token === 'function' ? await token() : (token ?? '');
  }
}

/** Submission sends a mutation. Until it succeeds, the same input is sent with the same idempotency key: a retry after a
 * lost answer does nothing twice. */
export class Submission<Data, Input extends { idempotencyKey: string }> {
  private attempt: Attempt | undefined;

  constructor(private readonly call: (input: Input, o?: CallOptions) => Promise<Data>) {}

  async send(input: Omit<Input, 'idempotencyKey'>, o?: CallOptions): Promise<Data> {
    this.attempt = attemptFor(this.attempt, input);
    const data = await this.call({ ...input, idempotencyKey: this.attempt.key } as Input, o);
    this.attempt = undefined;
    return data;
  }
}

function nameOf(text: string): string {
  return /^\s*(?:query|mutation|subscription)\s+(\w+)/.exec(text)?.[1] ?? '';
}

function envelopeOf<Data>(text: string): { data?: Data | null; errors?: readonly RawError[] } {
  try {
    return JSON.parse(text) as { data?: Data };
  } catch {
    return {}; // something between here and the platform has responded: the status is the evidence
  }
}

/** secondsOf reads a Retry-After of seconds; never more than a minute. */
function secondsOf(value: string | null): number {
  const seconds = Number(value ?? 0);
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), maxRetryAfter) : 0;
}
