// One workload: its state, its current operation, its timeline, and its actions.
import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { useRead, useThrottled } from '../api/hooks';
import { allocationName, shapeName } from '../lib/capacity';
import { WorkloadDocument } from '../generated/graphql';
import { operationName, words } from '../lib/format';
import { hourlyWord } from '../lib/money';
import type { Workload } from '../lifecycle/workload';
import { isUnderWay } from '../changes/words';
import { OperationProgress, Steps } from '../operations/OperationParts';
import { hasEnded, useOperation } from '../operations/useOperation';
import type { OperationView } from '../operations/useOperation';
import { SecretsCard } from '../secrets/SecretsCard';
import { Icon } from '../ui/Icons';
import { Notice, ProblemPage } from '../ui/Problem';
import { HealthMark, Status } from '../ui/Status';
import { Ago, Card, Copy, Fact, Glyph, Json, Loading, PageHead } from '../ui/parts';
import { ActionsCard } from './ActionsCard';
import { ConnectCard } from './ConnectCard';
import { MetricsCard } from './MetricsCard';
import { MembersCard } from './MembersCard';
import { OperatorCard } from './OperatorCard';
import { RepairCard } from './RepairCard';
import { TimelineCard } from './Timeline';
import { Troubles } from './Troubles';
import { UsageCard } from './UsageCard';
import { WorkloadActions } from './WorkloadActions';
import { WorkloadTabs } from './WorkloadTabs';
import { useTimeline } from './useTimeline';
import type { Followed } from './useTimeline';
import { isOver } from './WorkloadsPage';

/** The page of a workload: read once, then again whenever its timeline is ahead of what was read. */
export function WorkloadPage({ id, ...place }: { id: string } & Place) {
  const { data, problem, refresh } = useRead(WorkloadDocument, { id });
  const followed = useTimeline(id);
  const soon = useThrottled(refresh, 350);
  const behind = data !== undefined && followed.timeline.lastSeq > data.instance.revision;
  useEffect(() => {
    if (behind) soon();
  }, [behind, followed.timeline.lastSeq, soon]);
  if (data === undefined) {
    return (
      <div className="page">
        {problem !== undefined ? (
          <ProblemPage problem={problem} onRetry={refresh} />
        ) : (
          <div className="card">
            <Loading lines={9} />
          </div>
        )}
      </div>
    );
  }
  return <WorkloadView workload={data.instance} followed={followed} refresh={refresh} place={place} />;
}

/** The position on the page: a tab, and its object, such as a job or a member. */
interface Place {
  tab: string | undefined;
  of: string | undefined;
}

function WorkloadView({
  workload,
  followed,
  refresh,
  place,
}: {
  workload: Workload;
  followed: Followed;
  refresh: () => void;
  place: Place;
}) {
  const operation = useOperation(workload.lastOperation);
  const finished =
    operation !== null &&
    hasEnded(operation.state) &&
    workload.lastOperation !== null &&
    !hasEnded(workload.lastOperation.state);
  useEffect(() => {
    if (finished) refresh();
  }, [finished, refresh]);
  return (
    <div className="page" data-workload={workload.id} data-status={workload.status}>
      <PageHead
        title={workload.name}
        mark={<Glyph slug={workload.appSlug} size={48} />}
        crumbs={
          <>
            <Link to="/workloads">Workloads</Link>
            <Icon name="right" size={12} />
            <Link to="/catalog/$slug" params={{ slug: workload.appSlug }}>
              {workload.appSlug} {workload.appVersion}
            </Link>
          </>
        }
        lede={
          <span className="row" style={{ gap: 12, marginTop: 4 }}>
            <Status state={workload.status} />
            <HealthMark health={workload.health} message={workload.healthMessage} over={isOver(workload.status)} />
            <span className="small faint">
              created <Ago at={workload.createdAt} />
            </span>
            {workload.smoke && <span className="tag">smoke test</span>}
            {workload.system && <span className="tag">system app</span>}
          </span>
        }
        actions={<WorkloadActions workload={workload} refresh={refresh} />}
      />
      <Failed workload={workload} />
      <ConnectCard workload={workload} />
      <Troubles workload={workload} refresh={refresh} />
      <WorkloadTabs workload={workload} {...place}>
        <div className="workload live">
          <div className="stack">
            {operation !== null && (
              <OperationCard
                operation={operation}
                seen={workload.failure?.message}
                waiting={workload.blockers.some((each) => !isUnderWay(each.code))}
              />
            )}
            <MembersCard workload={workload} refresh={refresh} />
            <ActionsCard workload={workload} />
            <RepairCard workload={workload} refresh={refresh} />
            <OperatorCard workload={workload} refresh={refresh} />
            <UsageCard workload={workload} />
            <SecretsCard instanceId={workload.id} />
            <AboutCard workload={workload} />
          </div>
          <div className="stack">
            <MetricsCard workload={workload} />
            <TimelineCard followed={followed} />
            <HistoryCard workload={workload} />
          </div>
        </div>
      </WorkloadTabs>
    </div>
  );
}

function Failed({ workload }: { workload: Workload }) {
  if (workload.failure === null) return null;
  return (
    <Notice tone="bad" icon="warn">
      <b className="wrap-any said" style={{ display: 'block' }}>
        {workload.failure.message}
      </b>
      <div className="tail">
        <code>{workload.failure.code}</code>
        <span>To be fixed by the {workload.failure.owner}</span>
        {workload.releasedAt === null && (
          <span>Its members may still use capacity: decommission the workload to remove them.</span>
        )}
        <span>
          Correlation id <Copy value={workload.correlationId} what="correlation id" />
        </span>
      </div>
    </Notice>
  );
}

function OperationCard({
  operation,
  seen,
  waiting,
}: {
  operation: OperationView;
  seen: string | undefined;
  waiting: boolean;
}) {
  const over = hasEnded(operation.state);
  const [open, setOpen] = useState<boolean>();
  const shown = open ?? (!over || operation.state === 'FAILED');
  return (
    <Card
      title={operationName(operation.kind)}
      label="Operation"
      className="operation-card"
      aside={
        <span className="row">
          <Button size="compact-xs" variant="subtle" onClick={() => setOpen(!shown)} aria-expanded={shown}>
            {shown ? 'Hide steps' : 'Show steps'}
          </Button>
          <Link to="/operations/$id" params={{ id: operation.id }} className="small">
            Open
          </Link>
        </span>
      }
    >
      <div className="stack" data-operation={operation.id} data-state={operation.state}>
        <OperationProgress operation={operation} seen={seen} waiting={waiting} />
        {shown && <Steps steps={operation.steps} over={operation.state} waiting={waiting} error={operation.error} />}
      </div>
    </Card>
  );
}

function AboutCard({ workload }: { workload: Workload }) {
  return (
    <Card title="Details">
      <div className="stack">
        <dl className="facts">
          <Fact term="App">
            {workload.manifest.displayName} {workload.appVersion}
          </Fact>
          <Fact term="Capacity">
            {workload.allocations.length === 0
              ? shapeName(workload.boundCapacityShape)
              : workload.allocations.map(allocationName).join(', ')}
          </Fact>
          {workload.allocations.length > 0 && <Fact term="Cost">{hourlyWord(workload.allocations)}</Fact>}
          <Fact term="Control plane">
            {words(workload.operatingMode)}, for{' '}
            {workload.controlPlaneScope === 'TENANT' ? (
              <Link to="/control-planes">the whole tenant</Link>
            ) : (
              'one project'
            )}
          </Fact>
          <Fact term="Run by">{workload.runtimeBackend}</Fact>
          <Fact term="Generation">{workload.generation}</Fact>
          <Fact term="Last observed">
            {workload.observedAt === null ? <span className="faint">not yet</span> : <Ago at={workload.observedAt} />}
          </Fact>
          <Fact term="Last change">
            <Ago at={workload.updatedAt} />
          </Fact>
          {workload.releasedAt !== null && (
            <Fact term="Cleanup proved">
              <Ago at={workload.releasedAt} />
            </Fact>
          )}
          <Fact term="Id">
            <Copy value={workload.id} what="id" />
          </Fact>
          <Fact term="Correlation id">
            <Copy value={workload.correlationId} what="correlation id" />
          </Fact>
        </dl>
        <div className="stack-s">
          <h3>Configuration</h3>
          <Json value={workload.config} label="Configuration" />
        </div>
      </div>
    </Card>
  );
}

function HistoryCard({ workload }: { workload: Workload }) {
  const operations = workload.operations.edges.map((edge) => edge.node);
  return (
    <Card title="Operations" pad={false}>
      <ul style={{ listStyle: 'none', padding: '6px 16px 10px' }}>
        {operations.map((each) => (
          <li key={each.id} className="row" style={{ justifyContent: 'space-between', padding: '5px 0' }}>
            <Link to="/operations/$id" params={{ id: each.id }}>
              {operationName(each.kind)}
            </Link>
            <span className="row small faint">
              <Status state={each.state} operation bare />
              <Ago at={each.createdAt} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
