// Parts of an operation's view: its progress bar, its steps, its failure.
import type { OperationState, StepBitsFragment } from '../generated/graphql';
import { outcomeWord } from '../changes/words';
import { between, operationName, words } from '../lib/format';
import { Icon } from '../ui/Icons';
import type { IconName } from '../ui/Icons';
import { Notice } from '../ui/Problem';
import { Status, toneOf } from '../ui/Status';
import { Json, useNow } from '../ui/parts';
import type { OperationView } from './useOperation';
import { hasEnded } from './useOperation';

/** State, message and bar. `seen` is the failure message already shown elsewhere; `waiting`: it waits for something. */
export function OperationProgress({
  operation,
  seen,
  waiting = false,
}: {
  operation: OperationView;
  seen?: string | undefined;
  waiting?: boolean;
}) {
  const now = useNow(1_000);
  const state = waiting && operation.state === 'RUNNING' ? 'WAITING' : operation.state;
  return (
    <div className="stack-s">
      <div className="row" style={{ justifyContent: 'space-between' }}>
        <span className="row">
          <Status state={state} operation />
          {operation.outcome !== null && operation.outcome !== 'NORMAL' && (
            <Status
              state="DEGRADED"
              label={words(operation.outcome)}
              title={outcomeWord(operation.outcome)?.text ?? ''}
            />
          )}
        </span>
        <span className="small faint num">
          {hasEnded(operation.state)
            ? `took ${between(operation.createdAt, operation.endedAt, now)}`
            : `${operation.percent} % · ${between(operation.createdAt, null, now)}`}
        </span>
      </div>
      <div
        className={`op-bar tone-${toneOf(state, true)}`}
        role="progressbar"
        aria-valuenow={operation.percent}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-label={`${operationName(operation.kind)} progress`}
      >
        <i style={{ width: `${hasEnded(operation.state) ? 100 : operation.percent}%` }} />
      </div>
      {operation.message !== '' && !says(operation.error, operation.message) && (
        <p className="soft wrap-any said">{operation.message}</p>
      )}
      {operation.state !== 'CANCELED' && operation.error?.message !== seen && <FailureNotice operation={operation} />}
    </div>
  );
}

/** Reports whether a failure's message has a text already, so that it is not shown a second time. */
export function says(error: { readonly message: string } | null, text: string): boolean {
  return error !== null && text.trim() !== '' && error.message.includes(text.trim());
}

/** Why an operation failed and who has to fix it; nothing for one that did not fail. */
export function FailureNotice({ operation }: { operation: Pick<OperationView, 'error'> }) {
  const { error } = operation;
  if (error === null) return null;
  return (
    <Notice tone="bad" icon="warn">
      <b className="wrap-any said" style={{ display: 'block' }}>
        {error.message}
      </b>
      <div className="tail">
        <code>{error.code}</code>
        <span>To be fixed by the {error.owner}</span>
        {error.retryable && <span>A retry may help</span>}
      </div>
    </Notice>
  );
}

const stepIcons: Readonly<Record<string, IconName>> = {
  SUCCEEDED: 'check',
  FAILED: 'cross',
  RUNNING: 'clock',
  SKIPPED: 'minus',
  PENDING: 'circle',
  UNDOING: 'clock',
  UNDONE: 'back',
};

/** The steps in order, with duration and evidence. `waiting`: the running one waits; `error` is already shown. */
export function Steps({
  steps,
  over,
  evidence,
  waiting = false,
  error = null,
}: {
  steps: readonly StepBitsFragment[];
  over: OperationState;
  evidence?: ReadonlyMap<string, unknown>;
  waiting?: boolean;
  error?: OperationView['error'];
}) {
  const now = useNow(1_000);
  if (steps.length === 0)
    return <p className="small faint">{hasEnded(over) ? 'It had no steps.' : 'No worker has claimed it yet.'}</p>;
  return (
    <ol className="steps" aria-label="Steps">
      {[...steps]
        .sort((a, b) => a.ordinal - b.ordinal)
        .map((step) => (
          <li
            key={step.id}
            className={`tone-${toneOf(waits(step, waiting) ? 'WAITING' : step.state, true)}`}
            data-step={step.name}
            data-state={step.state}
            data-waits={waits(step, waiting)}
          >
            <Icon name={waits(step, waiting) ? 'pause' : (stepIcons[step.state] ?? 'circle')} size={15} />
            <span>
              {words(step.name)}
              {step.state === 'UNDONE' ? (
                <span className="faint small"> · undone</span>
              ) : step.state === 'UNDOING' ? (
                <span className="small"> · being undone</span>
              ) : waits(step, waiting) ? (
                <span className="small"> · waiting</span>
              ) : (
                <span className="hidden-visually">, {words(step.state)}</span>
              )}
              {step.attempt > 1 && <span className="faint small"> · attempt {step.attempt}</span>}
              {step.message !== '' &&
                step.state !== 'SUCCEEDED' &&
                step.state !== 'UNDONE' &&
                !says(error, step.message) && <span className="msg said">{step.message}</span>}
              {evidence?.has(step.id) === true && (
                <details className="fold">
                  <summary>Evidence</summary>
                  <Json value={evidence.get(step.id)} label={`Evidence of ${words(step.name)}`} />
                </details>
              )}
            </span>
            <span className="time num">{between(step.startedAt, step.endedAt, now)}</span>
          </li>
        ))}
    </ol>
  );
}

function waits(step: StepBitsFragment, waiting: boolean): boolean {
  return waiting && step.state === 'RUNNING';
}
