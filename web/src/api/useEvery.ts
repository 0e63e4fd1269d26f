import { useEffect, useRef } from 'react';

/**
 * Runs at once, and again some milliseconds after the last run has ended, as long as the condition is true and the page
 * is visible. It runs at once when `again` changes or the page is visible again.
 */
export function useEvery(milliseconds: number, condition: boolean, run: () => Promise<void>, again: unknown): void {
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  useEffect(() => {
    if (!condition) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let running = false;
    let left = false;
    const go = () => {
      clearTimeout(timer);
      if (running || left || document.hidden) return;
      running = true;
      void latest.current().finally(() => {
        running = false;
        if (!left) timer = setTimeout(go, milliseconds);
      });
    };
    document.addEventListener('visibilitychange', go);
    go();
    return () => {
      left = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', go);
    };
  }, [milliseconds, condition, again]);
}
