import { useEffect, useRef } from 'react';

/** Milliseconds between reads of data that changes without an event of the project. */
const every = 2_500;

/** Calls `run` regularly as long as the condition is true. */
export function useWhile(condition: boolean, run: () => void): void {
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  useEffect(() => {
    if (!condition) return undefined;
    const timer = setInterval(() => latest.current(), every);
    return () => clearInterval(timer);
  }, [condition]);
}
