// The order of a timeline: numbered events arrive, each is shown once, and gaps are counted.

/** What the order needs of an event: its number, from 1 without gaps, and its cursor in the feed. */
export interface Numbered {
  readonly seq: number;
  readonly cursor: string;
}

/** The most events kept on a page; older ones are dropped and counted. */
export const maxKept = 5000;

/** Events in order without repeats, and the cursor to resume from. */
export interface Timeline<E extends Numbered> {
  readonly events: readonly E[];
  /** The number of the newest event; 0 before the first. */
  readonly lastSeq: number;
  /** The cursor to resume from; undefined before the first event. */
  readonly cursor: string | undefined;
  /** How many old events were dropped because of maxKept. */
  readonly dropped: number;
  /** How many numbers were skipped; any other value than 0 is an error of the feed, and is shown. */
  readonly missing: number;
}

/** Returns a timeline before its first event. */
export function emptyTimeline<E extends Numbered>(): Timeline<E> {
  return { events: [], lastSeq: 0, cursor: undefined, dropped: 0, missing: 0 };
}

/** Returns the timeline with the arrivals added: repeats are left out, the rest is ordered by number. */
export function append<E extends Numbered>(timeline: Timeline<E>, arrivals: readonly E[]): Timeline<E> {
  const fresh = arrivals.filter((event) => event.seq > timeline.lastSeq).sort((a, b) => a.seq - b.seq);
  let { lastSeq, cursor, missing } = timeline;
  const added: E[] = [];
  for (const event of fresh) {
    if (event.seq === lastSeq) continue; // the same event twice in one batch
    missing += event.seq - lastSeq - 1;
    lastSeq = event.seq;
    cursor = event.cursor;
    added.push(event);
  }
  if (added.length === 0) return timeline;
  const all = [...timeline.events, ...added];
  const surplus = Math.max(0, all.length - maxKept);
  return { events: all.slice(surplus), lastSeq, cursor, dropped: timeline.dropped + surplus, missing };
}
