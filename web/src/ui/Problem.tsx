// Failures as users see them: what went wrong, where, whether a retry may help, and the correlation id.
import { Button } from '@mantine/core';
import { createContext, useContext } from 'react';
import type { ReactNode } from 'react';
import type { Problem, Reason } from '../api/errors';
import { Copy } from './parts';
import { Icon } from './Icons';
import type { IconName } from './Icons';
import type { Tone } from './Status';

/**
 * What is drawn beside every problem, such as a button that explains a missing permission. The console's root provides
 * it: a feature draws it, and no part of ui may import a feature.
 */
export const ProblemExtra = createContext<(problem: Problem) => ReactNode>(() => null);

/** A coloured notice. */
export function Notice({
  tone,
  icon,
  children,
  role,
}: {
  tone: Tone;
  icon: IconName;
  children: ReactNode;
  role?: 'alert' | 'status';
}) {
  return (
    <div className={`notice tone-${tone}`} role={role}>
      <Icon name={icon} size={18} />
      <div className="grow">{children}</div>
    </div>
  );
}

/**
 * A problem in the place where it happened. `reasons` overrides which reasons are listed, for a form that shows the
 * others at its fields.
 */
export function ProblemNotice({
  problem,
  reasons = problem.reasons,
  onRetry,
}: {
  problem: Problem;
  reasons?: readonly Reason[];
  onRetry?: () => void;
}) {
  const listed = reasons.filter((reason) => reason.message !== problem.message.replace(/\.$/, '').toLowerCase());
  return (
    <Notice tone={problem.code === 'NETWORK' ? 'warn' : 'bad'} icon="warn" role="alert">
      <b>{problem.message}</b>
      {listed.length > 0 && (
        <ul>
          {listed.map((reason, at) => (
            <li key={at}>
              {reason.message}
              {reason.path !== '' && (
                <>
                  {' '}
                  <code>{reason.path}</code>
                </>
              )}
            </li>
          ))}
        </ul>
      )}
      <ProblemTail problem={problem} onRetry={onRetry} />
    </Notice>
  );
}

function ProblemTail({ problem, onRetry }: { problem: Problem; onRetry?: (() => void) | undefined }) {
  const extra = useContext(ProblemExtra);
  return (
    <div className="tail">
      <code data-code={problem.code}>{problem.code}</code>
      {problem.correlationId !== '' && (
        <span>
          Correlation id <Copy value={problem.correlationId} what="correlation id" />
        </span>
      )}
      {problem.traceId !== undefined && (
        <span>
          Trace id <Copy value={problem.traceId} what="trace id" />
        </span>
      )}
      {extra(problem)}
      {onRetry !== undefined && (
        <Button size="compact-xs" variant="default" leftSection={<Icon name="retry" size={13} />} onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** The content of a page whose object cannot be shown. */
export function ProblemPage({ problem, onRetry }: { problem: Problem; onRetry?: () => void }) {
  const gone = problem.code === 'NOT_FOUND';
  const forbidden = problem.code === 'FORBIDDEN';
  return (
    <div className="card">
      <div className="empty" role="alert">
        <Icon name={gone ? 'search' : forbidden ? 'audit' : 'warn'} size={34} />
        <h2>{gone ? 'Not found' : forbidden ? 'Not allowed' : 'Something went wrong'}</h2>
        <p>{gone ? 'The object does not exist, or you have no access to it.' : problem.message}</p>
        <ProblemTail problem={problem} onRetry={gone || forbidden ? undefined : onRetry} />
      </div>
    </div>
  );
}
