// The waits between tries.

/** backoff is milliseconds before attempt n, from 0: doubling from 300 to at most 10,000, each plus up to a half. */
export function backoff(attempt: number, random: () => number = Math.random): number {
  return Math.min(10_000, 300 * 2 ** Math.min(attempt, 10)) * (1 + random() / 2);
}

/** pause waits for milliseconds, and throws when the signal ends meanwhile. */
export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason as Error);
      return;
    }
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
