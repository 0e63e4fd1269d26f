// One operation: who requested what, its progress, what it waits for, and the evidence of its end.
import { Link } from '@tanstack/react-router';
import { useEffect } from 'react';
import { useWhile } from '../api/useWhile';
import { useRead } from '../api/hooks';
import { BlockersCard } from '../changes/Blockers';
import { WorkTable } from '../changes/PlanPreview';
import { isUnderWay, moneyWord, outcomeWord } from '../changes/words';
import { OperationDetailDocument } from '../generated/graphql';
import { fullTime, operationName, plural, words } from '../lib/format';
import { Icon } from '../ui/Icons';
import { Notice, ProblemPage } from '../ui/Problem';
import { Ago, Card, Copy, Fact, Json, Loading, PageHead } from '../ui/parts';
import { CancelRetry } from './CancelRetry';
import { OperationProgress, Steps } from './OperationParts';
import type { Detail } from './detail';
import { hasEnded, useOperation } from './useOperation';

/** The page of an operation: followed live, and read again while it is in progress, for its blockers. */
export function OperationPage({ id }: { id: string }) {
  const { data, problem, refresh } = useRead(OperationDetailDocument, { id });
  useWhile(data !== undefined && !hasEnded(data.operation.state), refresh);
  if (data === undefined) {
    return (
      <div className="page">
        {problem !== undefined ? (
          <ProblemPage problem={problem} onRetry={refresh} />
        ) : (
          <div className="card">
            <Loading lines={8} />
          </div>
        )}
      </div>
    );
  }
  return <OperationView detail={data.operation} refresh={refresh} />;
}

function OperationView({ detail, refresh }: { detail: Detail; refresh: () => void }) {
  const now = useOperation(detail) ?? detail;
  const finished = hasEnded(now.state) && !hasEnded(detail.state);
  useEffect(() => {
    if (finished) refresh();
  }, [finished, refresh]); // evidence arrives with the end
  const { instance } = detail;
  const open = !hasEnded(now.state);
  const waiting = open && (detail.waitsFor.length > 0 || detail.blockers.some((each) => !isUnderWay(each.code)));
  const asked = askedFor(detail.desiredChange);
  return (
    <div className="page" data-operation-page={detail.id} data-state={now.state}>
      <PageHead
        title={operationName(detail.kind)}
        lede={
          instance === null ? undefined : (
            <>
              of{' '}
              <Link to="/workloads/$id" params={{ id: instance.id }}>
                {instance.name}
              </Link>
            </>
          )
        }
        crumbs={
          <>
            <Link to="/operations">Operations</Link>
            <Icon name="right" size={12} />
            <span className="mono">{detail.id}</span>
          </>
        }
        actions={<CancelRetry detail={detail} state={now.state} refresh={refresh} />}
      />
      <CancelNotice detail={detail} open={open} />
      <Outcome outcome={now.outcome} />
      {open && <BlockersCard blockers={detail.blockers} title="What it waits for" />}
      <div className="workload">
        <div className="stack">
          <Card title="Progress">
            <OperationProgress operation={now} waiting={waiting} />
          </Card>
          {open && detail.waitsFor.length > 0 && (
            <Card title="Work that it waits for" label="Work that it waits for">
              <WorkTable work={detail.waitsFor} />
            </Card>
          )}
          <Card title="Steps">
            <Steps
              steps={now.steps}
              over={now.state}
              evidence={evidenceOf(detail)}
              waiting={waiting}
              error={now.error}
            />
          </Card>
          {hasContent(detail.evidence) && (
            <Card title="Evidence">
              <Json value={detail.evidence} label="Evidence" />
            </Card>
          )}
          {hasContent(asked) && (
            <Card title="Requested change">
              <Json value={asked} label="Requested change" />
            </Card>
          )}
        </div>
        <Facts detail={detail} now={now} />
      </div>
    </div>
  );
}

function Facts({ detail, now }: { detail: Detail; now: Pick<Detail, 'startedAt' | 'endedAt'> }) {
  return (
    <Card title="Details">
      <dl className="facts">
        <Fact term="Requested by">
          {detail.requester.name}
          <span className="faint"> · {words(detail.requester.kind)}</span>
        </Fact>
        <Fact term="Requested">
          <Ago at={detail.createdAt} />
        </Fact>
        <Fact term="Started">
          <Ago at={now.startedAt} />
        </Fact>
        <Fact term="Ended">
          <Ago at={now.endedAt} />
        </Fact>
        {detail.costSoFar !== null && <Fact term="Cost so far">{moneyWord(detail.costSoFar)}</Fact>}
        <Fact term="Reason">{detail.reason === '' ? <span className="faint">—</span> : detail.reason}</Fact>
        {detail.targetIds.length > 0 && (
          <Fact term={plural(detail.targetIds.length, 'member')}>
            <Targets ids={detail.targetIds} />
          </Fact>
        )}
        {detail.retryOf !== null && (
          <Fact term="Retry of">
            <Link to="/operations/$id" params={{ id: detail.retryOf }} className="mono">
              {detail.retryOf}
            </Link>
          </Fact>
        )}
        <Fact term="Deadline">
          {fullTime(detail.deadline)}
          <div className="small faint">
            {detail.force
              ? 'By force from the start'
              : detail.onDeadline === 'FORCE'
                ? 'After that it continues by force'
                : 'After that it fails'}
          </div>
        </Fact>
        {detail.forcedAt !== null && (
          <Fact term="By force since">
            <Ago at={detail.forcedAt} />
          </Fact>
        )}
        <Fact term="Dispatch attempts">{detail.dispatchAttempt}</Fact>
        <Fact term="Claim epoch">{detail.claimEpoch}</Fact>
        <Fact term="Operation">
          <Copy value={detail.id} what="operation id" />
        </Fact>
        <Fact term="Correlation id">
          <Copy value={detail.correlationId} what="correlation id" />
          <div className="small">
            <Link to="/triage/$id" params={{ id: detail.id }}>
              What happened, and what to do next
            </Link>
          </div>
        </Fact>
        <Fact term="Trace id">
          <Copy value={detail.traceId} what="trace id" />
        </Fact>
      </dl>
    </Card>
  );
}

/** The most targets that are listed. */
const maxTargets = 12;

function Targets({ ids }: { ids: readonly string[] }) {
  return (
    <>
      {ids.slice(0, maxTargets).map((id) => (
        <div key={id}>
          <Copy value={id} what="member id" />
        </div>
      ))}
      {ids.length > maxTargets && <div className="small faint">and {ids.length - maxTargets} more</div>}
    </>
  );
}

/** The state of a request to cancel. */
function CancelNotice({ detail, open }: { detail: Detail; open: boolean }) {
  if (detail.cancelRequestedAt === null) return null;
  return (
    <Notice tone={open ? 'warn' : 'idle'} icon="info" role="status">
      <b>
        {detail.cancelRequester} requested its cancellation <Ago at={detail.cancelRequestedAt} />.
      </b>{' '}
      <span className="said" style={{ display: 'inline-block' }} data-cancel-message>
        {detail.cancelMessage === '' ? 'The app has not answered yet whether it is too late.' : detail.cancelMessage}
      </span>
    </Notice>
  );
}

function Outcome({ outcome }: { outcome: string | null }) {
  const word = outcomeWord(outcome);
  if (word === undefined) return null;
  return (
    <Notice tone="warn" icon="warn" role="status">
      <b data-outcome={outcome}>{word.title}.</b> {word.text}
    </Notice>
  );
}

/** Returns the evidence of each step that has any, by the step's id. */
function evidenceOf(detail: Detail): ReadonlyMap<string, unknown> {
  return new Map(
    detail.steps.flatMap((step) => (hasContent(step.evidence) ? [[step.id, step.evidence] as const] : [])),
  );
}

/** Returns the change as requested, without the platform's own notes in it. */
function askedFor(change: unknown): unknown {
  if (typeof change !== 'object' || change === null || Array.isArray(change)) return change;
  return Object.fromEntries(Object.entries(change).filter(([key]) => key !== 'platform'));
}

/** Reports whether a JSON value has anything to show. */
function hasContent(value: unknown): boolean {
  return typeof value === 'object' ? value !== null && Object.keys(value).length > 0 : value !== undefined;
}
