// How events look: their name for people, their tone, and which are only progress.
import { labelOf } from '../lib/format';
import type { Tone } from '../ui/Status';

/** The last word of an event's type, as words: `apps.instance.member_added` becomes `Member added`. */
export function eventName(type: string): string {
  return labelOf(type.slice(type.lastIndexOf('.') + 1));
}

/** Whether the event only tells how something goes on that other events begin and end: operations, and members' changes. A failure is never minor. */
export function isMinor(type: string): boolean {
  return !type.endsWith('failed') && /(^apps\.operation\.|progress|_changed$)/.test(type);
}

/** The tone of an event, by the words of its type; the platform's types are open to growth, so words, not a list. */
export function eventTone(type: string): Tone {
  const word = type.slice(type.lastIndexOf('.') + 1);
  if (/(failed|unhealthy|lost|rejected)/.test(word)) return 'bad';
  if (/(deleting|removing|draining|releasing|degraded|stopping|canceling|compensating|rolled_back)/.test(word)) return 'warn';
  if (/(running|healthy|succeeded|completed|active|added|ready|upgraded)/.test(word)) return 'good';
  if (/(deleted|removed|drained|released|stopped|canceled)/.test(word)) return 'idle';
  return 'busy';
}
