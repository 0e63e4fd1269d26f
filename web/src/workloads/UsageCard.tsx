// What a workload has used, by meter, until when that is known, and the reported records that were not accepted.
import { Button } from '@mantine/core';
import { useMemo } from 'react';
import { useRead } from '../api/hooks';
import { useRows } from '../api/pages';
import { useSession } from '../api/session';
import { WorkloadQuarantineDocument, WorkloadUsageDocument } from '../generated/graphql';
import type { WorkloadQuarantineQuery, WorkloadUsageQuery } from '../generated/graphql';
import { plural, words } from '../lib/format';
import { quantityWord } from '../lib/quantity';
import type { Workload } from '../lifecycle/workload';
import { More } from '../ui/Rows';
import { Notice, ProblemNotice } from '../ui/Problem';
import { Ago, Card, DataTable, Loading } from '../ui/parts';

type Sum = WorkloadUsageQuery['usageSums'][number];
type Source = WorkloadUsageQuery['usageSources'][number];
type Refused = WorkloadQuarantineQuery['usageQuarantine']['edges'][number]['node'];
const pick = (data: WorkloadQuarantineQuery) => data.usageQuarantine;

/** The card; nothing without the permission to see usage. */
export function UsageCard({ workload }: { workload: Workload }) {
  const { can } = useSession();
  return can('usage.read') ? <Usage workload={workload} /> : null;
}

function Usage({ workload: { id, projectId } }: { workload: Workload }) {
  const variables = useMemo(() => ({ projectId, instanceId: id }), [projectId, id]);
  const { data, problem, refresh } = useRead(WorkloadUsageDocument, variables);
  const refused = useRows(WorkloadQuarantineDocument, variables, pick);
  const again = () => {
    refresh();
    refused.refresh();
  };
  return (
    <Card
      title="Usage"
      pad={false}
      aside={
        <Button size="compact-xs" variant="subtle" onClick={again}>
          Read again
        </Button>
      }
    >
      {problem !== undefined && (
        <div className="card-body">
          <ProblemNotice problem={problem} onRetry={refresh} />
        </div>
      )}
      {data === undefined ? (
        problem === undefined && <Loading lines={3} />
      ) : (
        <>
          <Sums sums={data.usageSums} />
          {data.usageSources.map((source) => (
            <Known key={source.source} source={source} />
          ))}
        </>
      )}
      {refused.problem !== undefined && (
        <div className="card-body">
          <ProblemNotice problem={refused.problem} onRetry={refused.refresh} />
        </div>
      )}
      {refused.rows.length > 0 && <Quarantine rows={refused.rows} />}
      <More list={refused} />
    </Card>
  );
}

function Sums({ sums }: { sums: readonly Sum[] }) {
  if (sums.length === 0)
    return (
      <div className="card-body faint">
        Nothing is recorded yet. Usage is recorded about a minute after it was proved.
      </div>
    );
  const columns = [
    {
      head: 'Of',
      cell: (sum: Sum) => (
        <span data-meter={sum.meter}>
          <span className="strong">{sum.meter}</span>
          <span className="sub">{basisWord(sum)}</span>
        </span>
      ),
    },
    {
      head: 'Borne by',
      cell: (sum: Sum) =>
        sum.borneBy === 'TENANT' ? (
          'the tenant'
        ) : (
          <span>the platform{sum.borneReason !== null && <span className="sub">{words(sum.borneReason)}</span>}</span>
        ),
    },
    {
      head: 'Quantity',
      right: true,
      cell: (sum: Sum) => (
        <span className="num nowrap">
          {quantityWord(sum.quantity)}
          <span className="sub">
            {sum.unit}, {plural(sum.records, 'record')}
          </span>
        </span>
      ),
    },
  ];
  return (
    <DataTable
      label="Usage"
      columns={columns}
      rows={sums}
      keyOf={(sum) => [sum.basis, sum.meter, sum.unit, sum.borneBy, sum.borneReason].join(' ')}
    />
  );
}

function basisWord({ basis }: Sum): string {
  if (basis === 'CAPACITY') return 'capacity, metered by the platform';
  return basis === 'APP' ? 'counted by the app' : 'counted by the app, shown and not priced';
}

/** Until when the app's own usage was read, and why not later. */
function Known({ source }: { source: Source }) {
  return (
    <div className="card-body small" data-usage-failures={source.failures}>
      <span className="faint">
        {source.recordedTo === null ? (
          'The app’s own usage was not read yet.'
        ) : (
          <>
            The app’s own usage was read <Ago at={source.recordedTo} />.
          </>
        )}
      </span>
      {source.failures > 0 && (
        <Notice tone="warn" icon="warn">
          It could not be read {plural(source.failures, 'time')} in a row, and is read again:{' '}
          <span className="wrap-any said">{source.lastError}</span>
        </Notice>
      )}
    </div>
  );
}

function Quarantine({ rows }: { rows: readonly Refused[] }) {
  const columns = [
    {
      head: 'Not accepted',
      cell: (row: Refused) => (
        <span data-refused={row.code}>
          <span className="strong">{row.meter === '' ? 'a record' : row.meter}</span>
          <span className="sub wrap-any">{row.usageId}</span>
        </span>
      ),
    },
    {
      head: 'Why',
      cell: (row: Refused) => (
        <span>
          <code>{row.code}</code>
          <span className="sub wrap-any said">{row.message}</span>
        </span>
      ),
    },
    { head: 'Received', right: true, cell: (row: Refused) => <Ago at={row.createdAt} /> },
  ];
  return (
    <>
      <div className="card-body">
        <Notice tone="warn" icon="warn">
          The app reported records that were not accepted. They are kept here and not counted.
        </Notice>
      </div>
      <DataTable label="Records that were not accepted" columns={columns} rows={rows} keyOf={(row) => row.id} />
    </>
  );
}
