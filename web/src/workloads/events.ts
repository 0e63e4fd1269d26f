// How events are shown: their name, their tone, and which of them are only progress.
import { labelOf } from '../lib/format';
import type { Tone } from '../ui/Status';

/** Returns the last part of an event's type as words: `apps.instance.member_added` becomes `Member added`. */
export function eventName(type: string): string {
  return labelOf(type.slice(type.lastIndexOf('.') + 1));
}

/**
 * Reports whether an event only shows the progress of something that other events start and end: operations, and
 * changes of members. A failure is never minor.
 */
export function isMinor(type: string): boolean {
  return !type.endsWith('failed') && /(^apps\.operation\.|progress|_changed$)/.test(type);
}

/** Returns the tone of an event from the words of its type; not from a list, because the platform may add types. */
export function eventTone(type: string): Tone {
  const word = type.slice(type.lastIndexOf('.') + 1);
  if (/(failed|unhealthy|lost|rejected)/.test(word)) return 'bad';
  if (/(deleting|removing|draining|releasing|degraded|stopping|canceling|compensating|rolled_back)/.test(word))
    return 'warn';
  if (/(running|healthy|succeeded|completed|active|added|ready|upgraded)/.test(word)) return 'good';
  if (/(deleted|removed|drained|released|stopped|canceled)/.test(word)) return 'idle';
  return 'busy';
}
