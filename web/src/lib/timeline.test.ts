import { describe, expect, it } from 'vitest';
import { append, emptyTimeline, maxKept } from './timeline';

const event = (seq: number) => ({ seq, cursor: `c${seq}` });
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => event(from + at));
const seqs = (events: readonly { seq: number }[]) => events.map((each) => each.seq);

describe('append', () => {
  it('shows each event once when a replay overlaps', () => {
    const first = append(emptyTimeline(), range(1, 4));
    const again = append(first, range(3, 6));
    expect(seqs(again.events)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(again.missing).toBe(0);
  });

  it('gives the cursor of the newest event to read on from', () => {
    expect(append(emptyTimeline(), range(1, 3)).cursor).toBe('c3');
  });

  it('orders a batch and drops a repeat within it', () => {
    expect(seqs(append(emptyTimeline(), [event(2), event(1), event(2)]).events)).toEqual([1, 2]);
  });

  it('counts the numbers that were passed over', () => {
    expect(append(append(emptyTimeline(), range(1, 2)), [event(5)]).missing).toBe(2);
  });

  it('is the same object when nothing is new, so that nothing is drawn again', () => {
    const timeline = append(emptyTimeline(), range(1, 2));
    expect(append(timeline, range(1, 2))).toBe(timeline);
  });

  it('keeps a bounded number and counts what fell out', () => {
    const timeline = append(emptyTimeline(), range(1, maxKept + 7));
    expect([timeline.events.length, timeline.dropped, timeline.events[0]?.seq]).toEqual([maxKept, 7, 8]);
  });
});
