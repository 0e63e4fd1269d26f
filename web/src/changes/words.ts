// Words for what waits and for how an operation ended.
import { duration } from '../lib/format';

/** Whose it is to clear a blocker or to mend an orphan. */
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

/** Blockers that an operation has while it merely goes on; the documentation of blockers lists them so. */
const underWay: ReadonlySet<string> = new Set(['TASK_FAILED', 'TASK_RUNNING', 'COMPENSATING', 'ADAPTER_WORKING', 'STEP_RUNNING', 'DEADLINE_NEAR', 'FEED_SILENT']);

/** Whether a blocker says only that work is going on. A code that is new to the console is taken for a real one. */
export function isUnderWay(code: string): boolean {
  return underWay.has(code);
}

/** When something comes, such as `in 12 s`; what is due already comes now. */
export function untilWord(instant: string, now: number): string {
  const left = Date.parse(instant) - now;
  if (Number.isNaN(left)) return '';
  return left < 1_000 ? 'now' : `in ${duration(left)}`;
}

/** What an outcome other than the normal one means; undefined for a normal one. */
export function outcomeWord(outcome: string | null): { title: string; text: string } | undefined {
  switch (outcome) {
    case 'FORCED':
      return { title: 'Done by force', text: 'It did not wait for running work. The nodes have proved that nothing is left, but work may have been lost.' };
    case 'UNVERIFIED':
      return { title: 'Done, but not proved', text: 'A node did not answer, so it is not proved that nothing is left there. What may be left is listed as an orphan and is cleaned up once the node answers.' };
    case null:
    case 'NORMAL':
      return undefined;
    default:
      return { title: outcome.toLowerCase(), text: 'It did not end normally.' };
  }
}

/** An age in seconds in its two largest units. */
export function ageWord(seconds: number): string {
  const days = Math.floor(seconds / 86_400);
  return days > 0 ? `${days} d ${Math.floor((seconds % 86_400) / 3_600)} h` : duration(seconds * 1_000);
}

/** An amount of money as it came, exact, with its currency; a dash for what has no price. */
export function moneyWord(money: { readonly amount: string; readonly currency: string } | null): string {
  return money === null ? '—' : `${money.amount} ${money.currency}`;
}
