// The work of a workload and the output of one piece of it, read again and again by the app's own actions.
import { useCallback, useState } from 'react';
import { tell } from '../api/hooks';
import type { Answer } from '../api/hooks';
import type { Problem } from '../api/errors';
import { useEvery } from '../api/useEvery';
import { InvokeActionDocument } from '../generated/graphql';
import type { InvokeActionMutation } from '../generated/graphql';
import { newKey } from '../lib/idempotency';
import type { Workload } from '../lifecycle/workload';
import { actionNamed, inputWith, rowsOf, textAt } from './work';
import type { Work, WorkRow } from './work';

/** Milliseconds between two reads of the list: an app cannot report that its queue has changed. */
export const listEvery = 5_000;

/** Milliseconds between two reads of an output that is followed. */
export const outputEvery = 2_000;

/** The list as it was read last. */
export interface Listed {
  readonly rows: readonly WorkRow[] | undefined;
  readonly problem: Problem | undefined;
  /** When it was read. */
  readonly at: string | null;
  readonly refresh: () => void;
}

/** Reads the list while `watched`, and at once when the workload has changed. */
export function useWork(workload: Workload, work: Work, watched: boolean): Listed {
  const [state, setState] = useState<Omit<Listed, 'refresh'>>({ rows: undefined, problem: undefined, at: null });
  const [asked, setAsked] = useState(0);
  useEvery(
    listEvery,
    watched,
    async () => {
      const answer = await invoke(workload.id, work.list.action, {});
      const at = new Date().toISOString();
      setState((before) =>
        answer.problem === undefined
          ? { rows: rowsOf(work, answer.data.invokeAction.output), problem: undefined, at }
          : { ...before, problem: answer.problem },
      );
    },
    `${workload.revision} ${asked}`,
  );
  const refresh = useCallback(() => setAsked((before) => before + 1), []);
  return { ...state, refresh };
}

/** The output of one piece of work. */
export interface Output {
  /** Undefined until it was read. */
  readonly text: string | undefined;
  readonly problem: Problem | undefined;
}

/** Reads what a piece of work printed; again and again while `follow`, and once more when `over` becomes true. */
export function useOutput(workload: Workload, work: Work, id: string, follow: boolean, over: boolean): Output {
  const [output, setOutput] = useState<Output>({ text: undefined, problem: undefined });
  const action = actionNamed(workload, work.output?.action);
  const [read, setRead] = useState('');
  const state = `${id} ${over}`;
  useEvery(
    outputEvery,
    action !== undefined && ((follow && !over) || read !== state),
    async () => {
      if (action === undefined || !work.output) return;
      const answer = await invoke(workload.id, action.name, inputWith(action, work.output.id, id));
      const { text } = work.output;
      setRead(state);
      setOutput((before) =>
        answer.problem === undefined
          ? { text: textAt(answer.data.invokeAction.output, text), problem: undefined }
          : { ...before, problem: answer.problem },
      );
    },
    state,
  );
  return output;
}

function invoke(instanceId: string, action: string, input: unknown): Promise<Answer<InvokeActionMutation>> {
  return tell(InvokeActionDocument, {
    input: { instanceId, projectId: null, action, input, reason: null, idempotencyKey: newKey() },
  });
}
