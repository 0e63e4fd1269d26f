import { useEffect, useState } from 'react';
import { live } from '../api/client';
import { OperationProgressDocument } from '../generated/graphql';
import type { OperationBitsFragment, OperationState, StepBitsFragment } from '../generated/graphql';

/** An operation with its steps, as every page shows it. */
export type OperationView = OperationBitsFragment & { readonly steps: readonly StepBitsFragment[] };

const ended: ReadonlySet<OperationState> = new Set<OperationState>(['SUCCEEDED', 'FAILED', 'CANCELED']);

/** Reports whether an operation has ended. */
export function hasEnded(state: OperationState): boolean {
  return ended.has(state);
}

/** Returns the current operation: what was read, or what the live feed sent since, whichever is newer. */
export function useOperation(read: OperationView | null): OperationView | null {
  const [followed, setFollowed] = useState<OperationView>();
  const watched = read !== null && !hasEnded(read.state) ? read.id : undefined;
  useEffect(() => {
    if (watched === undefined) return undefined;
    return live.follow(
      OperationProgressDocument,
      { operationId: watched },
      {
        onData: (data) => setFollowed(data.operationProgress),
        onEnd: () => undefined, // what was read stays on the page; the page reads again with each event of the workload
        completes: true,
      },
    );
  }, [watched]);
  if (read === null || followed?.id !== read.id) return read;
  return isFurther(followed, read) ? followed : read;
}

/** Reports whether a is at least as far as b. An operation's percent never decreases, and its end is final. */
function isFurther(a: OperationView, b: OperationView): boolean {
  if (hasEnded(b.state)) return hasEnded(a.state);
  return hasEnded(a.state) || a.percent >= b.percent;
}
