// The parts of the stand-in's world: ids, instants, connections, and logs that can be followed.
import { randomBytes } from 'node:crypto';

/** A random typed id. */
export const id = (prefix) => `${prefix}_${randomBytes(13).toString('hex')}`;

/** A random correlation id. */
export const correlation = () => `c-${randomBytes(8).toString('hex')}`;

/** The instant now, and so many minutes ago. */
export const now = () => new Date().toISOString();
export const past = (minutes) => new Date(Date.now() - minutes * 60_000).toISOString();

/** A connection over rows; cursors are positions. */
export function connection(rows, { first = 50, after } = {}) {
  const start = after == null ? 0 : Number(after) + 1;
  const edges = rows.slice(start, start + first).map((node, at) => ({ cursor: String(start + at), node }));
  return {
    edges,
    pageInfo: {
      hasNextPage: start + first < rows.length,
      hasPreviousPage: start > 0,
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  };
}

/** A log that can be followed from a position: replays, then waits for what comes. */
export class Log {
  items = [];
  #waiting = new Set();

  push(item) {
    this.items.push(item);
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  async *follow(position, pick) {
    for (let at = position; ; at++) {
      while (at >= this.items.length) await new Promise((resolve) => this.#waiting.add(resolve));
      yield pick(this.items[at], at);
    }
  }
}
