// One operation: who asked for what, how it goes, and what proves its end.
import { Link } from '@tanstack/react-router';
import { useEffect } from 'react';
import { useRead } from '../api/hooks';
import { OperationDetailDocument } from '../generated/graphql';
import type { OperationDetailQuery } from '../generated/graphql';
import { operationName, words } from '../lib/format';
import { Icon } from '../ui/Icons';
import { ProblemPage } from '../ui/Problem';
import { Ago, Card, Copy, Fact, Json, Loading, PageHead } from '../ui/parts';
import { OperationProgress, Steps } from './OperationParts';
import { hasEnded, useOperation } from './useOperation';

type Detail = OperationDetailQuery['operation'];

/** The page of an operation. */
export function OperationPage({ id }: { id: string }) {
  const { data, problem, refresh } = useRead(OperationDetailDocument, { id });
  if (data === undefined) {
    return <div className="page">{problem !== undefined ? <ProblemPage problem={problem} onRetry={refresh} /> : <div className="card"><Loading lines={8} /></div>}</div>;
  }
  return <OperationView detail={data.operation} refresh={refresh} />;
}

function OperationView({ detail, refresh }: { detail: Detail; refresh: () => void }) {
  const now = useOperation(detail) ?? detail;
  const finished = hasEnded(now.state) && !hasEnded(detail.state);
  useEffect(() => { if (finished) refresh(); }, [finished, refresh]); // evidence comes with the end
  const { instance } = detail;
  return (
    <div className="page">
      <PageHead
        title={operationName(detail.kind)}
        lede={instance === null ? undefined : <>of <Link to="/workloads/$id" params={{ id: instance.id }}>{instance.name}</Link></>}
        crumbs={<><Link to="/operations">Operations</Link><Icon name="right" size={12} /><span className="mono">{detail.id}</span></>}
      />
      <div className="workload">
        <div className="stack">
          <Card title="Progress"><OperationProgress operation={now} /></Card>
          <Card title="Steps"><Steps steps={now.steps} over={now.state} /></Card>
          {detail.evidence !== null && <Card title="Evidence"><Json value={detail.evidence} label="Evidence" /></Card>}
          {hasContent(detail.desiredChange) && <Card title="What was asked for"><Json value={detail.desiredChange} label="What was asked for" /></Card>}
        </div>
        <Card title="Details">
          <dl className="facts">
            <Fact term="Asked for by">{detail.requester.name}<span className="faint"> · {words(detail.requester.kind)}</span></Fact>
            <Fact term="Asked for"><Ago at={detail.createdAt} /></Fact>
            <Fact term="Taken up"><Ago at={now.startedAt} /></Fact>
            <Fact term="Ended"><Ago at={now.endedAt} /></Fact>
            <Fact term="Reason">{detail.reason === '' ? <span className="faint">—</span> : detail.reason}</Fact>
            <Fact term="Deadline">{new Date(detail.deadline).toLocaleTimeString()}</Fact>
            <Fact term="Dispatches">{detail.dispatchAttempt}</Fact>
            <Fact term="Claims">{detail.claimEpoch}</Fact>
            <Fact term="Operation"><Copy value={detail.id} what="operation id" /></Fact>
            <Fact term="Correlation id"><Copy value={detail.correlationId} what="correlation id" /></Fact>
          </dl>
        </Card>
      </div>
    </div>
  );
}

/** Whether there is anything to show of a JSON value. */
function hasContent(value: unknown): boolean {
  return typeof value === 'object' ? value !== null && Object.keys(value).length > 0 : value !== undefined;
}
