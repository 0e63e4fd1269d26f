// A form's input, kept while the form is closed.
import { useCallback, useState } from 'react';

/** The most drafts that are kept; the oldest are dropped first. */
const most = 50;

/** The drafts by name, only in the page's memory: input may be secret, and a login is a new page. */
const drafts = new Map<string, unknown>();

/** State that outlives its component: the next one with the same name has the value that the last one had. */
export function useDraft<Value>(name: string, initial: () => Value): [Value, (value: Value) => void] {
  const [value, setValue] = useState<Value>(() => (drafts.has(name) ? (drafts.get(name) as Value) : initial()));
  const set = useCallback(
    (next: Value) => {
      drafts.delete(name);
      drafts.set(name, next);
      for (const oldest of drafts.keys()) {
        if (drafts.size <= most) break;
        drafts.delete(oldest);
      }
      setValue(next);
    },
    [name],
  );
  return [value, set];
}
