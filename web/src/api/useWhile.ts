import { useEffect, useRef } from 'react';

/** Milliseconds between reads of what changes without an event of the project. */
const every = 2_500;

/** Calls back regularly as long as the condition holds. */
export function useWhile(condition: boolean, run: () => void): void {
  const latest = useRef(run);
  useEffect(() => { latest.current = run; });
  useEffect(() => {
    if (!condition) return undefined;
    const timer = setInterval(() => latest.current(), every);
    return () => clearInterval(timer);
  }, [condition]);
}
