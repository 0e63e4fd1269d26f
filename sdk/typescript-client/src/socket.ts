// Subscriptions over graphql-transport-ws, with nothing but a WebSocket: one connection for each feed.
import type { Sink, Transport } from './feed.js';

/** The part of a WebSocket that the client uses. The browser's, Node's from 22 on and the package ws all have it. */
interface Socket {
  send(text: string): void;
  close(code?: number, reason?: string): void;
  onopen: unknown;
  onmessage: unknown;
  onclose: unknown;
  onerror: unknown;
}

/** WebSocketClass makes sockets. */
export type WebSocketClass = new (url: string, protocol: string) => Socket;

const pingEvery = 15_000;
const silence = 3 * pingEvery;

interface Message {
  readonly type: string;
  readonly payload?: unknown;
}

/** socketTransport opens a connection for each subscription. token is read for each, and goes into connection_init. */
export function socketTransport(url: string, make: WebSocketClass, token: () => Promise<string>): Transport {
  return {
    subscribe: (payload, sink) => {
      const one = new Connection(new make(url, 'graphql-transport-ws'), payload, sink, token);
      return () => one.stop();
    },
  };
}

class Connection {
  private over = false;
  private heardAt = Date.now();
  private readonly timer = setInterval(() => this.ping(), pingEvery);

  constructor(
    private readonly socket: Socket,
    private readonly payload: { query: string; variables: Record<string, unknown> },
    private readonly sink: Sink,
    token: () => Promise<string>,
  ) {
    socket.onopen = () => {
      token().then(
        (value) => this.send({ type: 'connection_init', payload: value === '' ? {} : { authorization: `Bearer ${value}` } }),
        (error: unknown) => this.end(() => sink.error(error)),
      );
    };
    socket.onmessage = (event: { data: unknown }) => this.take(String(event.data));
    socket.onclose = (event: unknown) => this.end(() => sink.error(event));
    socket.onerror = () => this.end(() => sink.error(new Error('the connection failed')));
  }

  /** stop ends the subscription without a call of the sink. */
  stop(): void {
    this.send({ id: '1', type: 'complete' });
    this.end(() => undefined);
  }

  private take(text: string): void {
    if (this.over) return;
    this.heardAt = Date.now();
    const { type, payload } = JSON.parse(text) as Message;
    if (type === 'connection_ack') this.send({ id: '1', type: 'subscribe', payload: this.payload });
    else if (type === 'next') this.sink.next(payload as { data?: unknown });
    else if (type === 'error') this.end(() => this.sink.error(payload));
    else if (type === 'complete') this.end(() => this.sink.complete());
    else if (type === 'ping') this.send({ type: 'pong' });
  }

  /** A peer that has sent nothing for long counts as lost, even if the network has not noticed. */
  private ping(): void {
    if (Date.now() - this.heardAt > silence) this.end(() => this.sink.error(new Error('the platform sends nothing')));
    else this.send({ type: 'ping' });
  }

  private send(message: object): void {
    if (this.over) return;
    try {
      this.socket.send(JSON.stringify(message));
    } catch {
      // it closes, and its close event reports that
    }
  }

  private end(tell: () => void): void {
    if (this.over) return;
    this.over = true;
    clearInterval(this.timer);
    this.socket.close(1000, 'done');
    tell();
  }
}
