// Texts for blockers, orphans and outcomes of operations.
import { duration } from '../lib/format';

/** Returns who has to clear a blocker or clean up an orphan. */
export function ownerWord(owner: string): string {
  switch (owner) {
    case 'adapter':
      return 'handled by the app’s adapter';
    case 'platform':
      return 'handled by the platform';
    case 'user':
      return 'needs a person';
    case 'node':
      return 'handled by the node';
    default:
      return `handled by ${owner}`;
  }
}

/** The blockers of an operation that is simply in progress; docs/blockers.md lists them as such. */
const underWay: ReadonlySet<string> = new Set([
  'TASK_FAILED',
  'TASK_RUNNING',
  'COMPENSATING',
  'ADAPTER_WORKING',
  'STEP_RUNNING',
  'DEADLINE_NEAR',
  'FEED_SILENT',
]);

/** Reports whether a blocker only means that work is in progress. A code unknown to the console counts as real. */
export function isUnderWay(code: string): boolean {
  return underWay.has(code);
}

/** Returns the time until an instant, such as `in 12 s`; `now` for an instant that has passed. */
export function untilWord(instant: string, now: number): string {
  const left = Date.parse(instant) - now;
  if (Number.isNaN(left)) return '';
  return left < 1_000 ? 'now' : `in ${duration(left)}`;
}

/** Returns what an outcome means; undefined for the normal outcome. */
export function outcomeWord(outcome: string | null): { title: string; text: string } | undefined {
  switch (outcome) {
    case 'FORCED':
      return {
        title: 'Done by force',
        text: 'It did not wait for running work. The nodes have proved that nothing is left, but work may have been lost.',
      };
    case 'UNVERIFIED':
      return {
        title: 'Done, but not proved',
        text: 'A node did not answer, so it is not proved that nothing is left there. What may be left is listed as an orphan and is cleaned up once the node answers.',
      };
    case null:
    case 'NORMAL':
      return undefined;
    default:
      return { title: outcome.toLowerCase(), text: 'It did not end normally.' };
  }
}

/** Returns an age, given in seconds, in its two largest units. */
export function ageWord(seconds: number): string {
  const days = Math.floor(seconds / 86_400);
  return days > 0 ? `${days} d ${Math.floor((seconds % 86_400) / 3_600)} h` : duration(seconds * 1_000);
}

/** Returns an amount of money, exactly as received, with its currency; a dash when there is no price. */
export function moneyWord(money: { readonly amount: string; readonly currency: string } | null): string {
  return money === null ? '—' : `${money.amount} ${money.currency}`;
}
