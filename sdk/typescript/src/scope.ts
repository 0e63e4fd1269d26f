// Scopes: what ends a piece of work early. Every wait and every call of the kit is made in the scope that surrounds it.
//
// A scope is a signal that follows the asynchronous calls made in it, so that it need not be an argument of each. It
// ends at its time, with the scope around it, or when the run is interrupted; a wait in it then throws its reason, and
// so does the next call of the kit in it, if the caller caught the first.
import { AsyncLocalStorage } from "node:async_hooks";

export type Why = "canceled" | "deadline" | "stopping" | "forced";

/** Interrupted is why an operation's work was cut off. */
export class Interrupted extends Error {
  constructor(readonly why: Why) { super(`the operation was interrupted: ${why}`); }
}

/** TimedOut is thrown by work that did not end within its time. */
export class TimedOut extends Error {
  constructor(seconds: number) { super(`it did not end within ${seconds} seconds`); }
}

const current = new AsyncLocalStorage<AbortSignal>();
const never = new AbortController().signal;
const maxTimer = 2 ** 31 - 1;

/** signal returns the signal of the scope of this call; outside of any, a signal that never ends. */
export function signal(): AbortSignal { return current.getStore() ?? never; }

/** using calls work in the scope of a signal, in place of the scope around it. */
export function using<T>(scope: AbortSignal, work: () => Promise<T>): Promise<T> { return current.run(scope, work); }

/** within bounds work by seconds: it throws TimedOut when work has not ended by then. */
export async function within<T>(seconds: number, work: () => Promise<T>): Promise<T> {
  const own = new AbortController();
  const timer = setTimeout(() => own.abort(new TimedOut(seconds)), Math.min(seconds * 1000, maxTimer));
  try {
    return await using(AbortSignal.any([signal(), own.signal]), work);
  } finally {
    clearTimeout(timer);
  }
}

/** pause waits for seconds, and throws when its scope ends meanwhile. */
export function pause(seconds: number): Promise<void> {
  const scope = signal();
  return new Promise((resolve, reject) => {
    if (scope.aborted) return reject(scope.reason as Error);
    const stop = (): void => {
      clearTimeout(timer);
      reject(scope.reason as Error);
    };
    const timer = setTimeout(() => {
      scope.removeEventListener("abort", stop);
      resolve();
    }, Math.min(seconds * 1000, maxTimer));
    scope.addEventListener("abort", stop, { once: true });
  });
}

/** unlessEnded waits for a promise until the scope ends, whatever becomes of the promise then. */
export function unlessEnded<T>(work: Promise<T>, scope: AbortSignal = signal()): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(scope.reason as Error);
    if (scope.aborted) stop();
    scope.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => scope.removeEventListener("abort", stop)).catch(() => undefined);
  });
}

/** every works on several things at once, eight by default, and throws the first error after all have ended; the
 * others are cut off by then. */
export async function every<T>(list: Iterable<T>, work: (one: T) => Promise<void>, most = 8): Promise<void> {
  const left = [...list];
  const errors: unknown[] = [];
  const own = new AbortController();
  const failed = (error: unknown): void => {
    errors.push(error);
    own.abort(error instanceof Interrupted ? error : new Interrupted("canceled"));
  };
  await using(AbortSignal.any([signal(), own.signal]), async () => {
    const worker = async (): Promise<void> => {
      for (let one = left.shift(); one !== undefined && errors.length === 0; one = left.shift()) {
        await work(one).catch(failed);
      }
    };
    await Promise.all(Array.from({ length: Math.min(most, left.length) }, worker));
  });
  if (errors.length > 0) throw errors[0];
}
