// What a member of a workload uses, as charts over a time that people choose, with the same as a table.
import { Button, SegmentedControl, Select } from '@mantine/core';
import { useMemo, useState } from 'react';
import { useRead } from '../api/hooks';
import { useSession } from '../api/session';
import { MemberMetricsDocument, WorkloadNowDocument } from '../generated/graphql';
import type { MetricsRange } from '../generated/graphql';
import { memberName } from '../lifecycle/MemberDialogs';
import type { Workload } from '../lifecycle/workload';
import { ProblemNotice } from '../ui/Problem';
import { Card, DataTable, Loading } from '../ui/parts';
import { chartsOf, gapsOf, partsOf, ranges, sentenceOf, summaryOf, topOf } from './metrics';
import type { Chart, Limits, Metrics } from './metrics';
import { useMembers } from './useMembers';

/** The card; nothing without the permission to see members. */
export function MetricsCard({ workload }: { workload: Workload }) {
  const { members } = useMembers(workload);
  const { can } = useSession();
  const [chosen, setChosen] = useState<string | null>(null);
  const [range, setRange] = useState<MetricsRange>('HOUR');
  const measured = members.filter((member) => member.node !== null);
  const current = measured.filter((member) => member.status !== 'REMOVED');
  const choice = current.length === 0 ? measured : current;
  const member = choice.find((each) => each.id === chosen) ?? choice[0];
  if (!can(`${workload.permissionFamily}.node.read`) || member === undefined) return null;
  return (
    <Card
      title="What members use"
      label="What members use"
      aside={
        <Select
          size="xs"
          aria-label="Whose use"
          data={choice.map((each) => ({ value: each.id, label: memberName(each) }))}
          value={member.id}
          onChange={setChosen}
          allowDeselect={false}
        />
      }
    >
      <div className="stack-s">
        <SegmentedControl
          size="xs"
          aria-label="Time range"
          data={ranges.map((each) => ({ ...each }))}
          value={range}
          onChange={(value) => setRange(ranges.find((each) => each.value === value)?.value ?? 'HOUR')}
        />
        <MemberCharts key={member.id} id={member.id} workload={workload} range={range} />
      </div>
    </Card>
  );
}

function MemberCharts({ id, workload, range }: { id: string; workload: Workload; range: MetricsRange }) {
  const variables = useMemo(() => ({ id, range }), [id, range]);
  const place = useMemo(
    () => ({ projectId: workload.projectId, instanceId: workload.id }),
    [workload.projectId, workload.id],
  );
  const { data, problem, loading, refresh } = useRead(MemberMetricsDocument, variables);
  const now = useRead(WorkloadNowDocument, place);
  const limits = now.data?.memberUsage.find((each) => each.memberId === id);
  if (problem?.code === 'FAILED_PRECONDITION' || problem?.code === 'NODE_UNREACHABLE')
    return (
      <div className="row">
        <p className="small faint">{problem.message}</p>
        <Button size="compact-xs" variant="subtle" loading={loading} onClick={refresh}>
          Read again
        </Button>
      </div>
    );
  if (problem !== undefined) return <ProblemNotice problem={problem} onRetry={refresh} />;
  if (data === undefined) return <Loading lines={4} />;
  return (
    <>
      <Charts metrics={data.member.metrics} limits={limits} />
      <div className="row">
        <Button size="compact-xs" variant="subtle" loading={loading} onClick={refresh}>
          Read again
        </Button>
      </div>
    </>
  );
}

/** The charts of a series. */
export function Charts({ metrics, limits }: { metrics: Metrics; limits: Limits | undefined }) {
  const [table, setTable] = useState(false);
  const { points } = metrics;
  const charts = chartsOf(limits);
  const gaps = gapsOf(points);
  if (points.every((point) => point.samples === 0))
    return <p className="small faint">Nothing was measured in this time.</p>;
  return (
    <>
      {table ? (
        <SummaryTable charts={charts} metrics={metrics} />
      ) : (
        <div className="metric-charts">
          {charts.map((chart) => (
            <Figure key={chart.title} chart={chart} metrics={metrics} />
          ))}
        </div>
      )}
      <p className="small faint">
        Measured on the member&rsquo;s node every 10 seconds
        {metrics.stepSeconds > 10 && ', on average over ten minutes'}.
        {gaps > 0 &&
          ` ${gaps * metrics.stepSeconds} seconds of it are gaps: the member or its node's agent did not run.`}
        {limits?.gpusSimulated === true && ' Its GPUs are simulated: nothing is measured of them.'}
      </p>
      <div className="row">
        <Button size="compact-xs" variant="subtle" aria-pressed={table} onClick={() => setTable(!table)}>
          {table ? 'Show charts' : 'Show a table'}
        </Button>
      </div>
    </>
  );
}

const width = 320;
const height = 70;

function Figure({ chart, metrics: { points } }: { chart: Chart; metrics: Metrics }) {
  const top = topOf(chart, points);
  const text = sentenceOf(chart, points);
  const summaries = chart.lines.map((line) => summaryOf(line, points, chart.text));
  return (
    <figure className="chart metric">
      <svg viewBox={`0 -3 ${width} ${height + 6}`} role="img" aria-label={text} preserveAspectRatio="none">
        {[0, 0.5, 1].map((share) => (
          <line key={share} x1="0" x2={width} y1={height * share} y2={height * share} className="grid" />
        ))}
        {chart.lines.map((line, index) =>
          partsOf(points, line.measure, top, width, height).map((part) => (
            <polyline key={`${line.name} ${part.slice(0, 12)}`} points={part} className={`line-${index}`} />
          )),
        )}
      </svg>
      <figcaption className="small">
        <span className="strong">{chart.title}</span>
        {chart.lines.map((line, index) => (
          <span key={line.name} className={`key line-${index}`}>
            {chart.lines.length > 1 && `${line.name} `}
            {summaries[index]?.now ?? 'not measured'}
          </span>
        ))}
        <span className="faint">
          {chart.limit === null ? 'top' : 'of'} {chart.text(top)}
        </span>
      </figcaption>
    </figure>
  );
}

interface Row {
  readonly chart: string;
  readonly name: string;
  readonly now: string;
  readonly average: string;
  readonly max: string;
}

function SummaryTable({ charts, metrics: { points } }: { charts: readonly Chart[]; metrics: Metrics }) {
  const rows = charts.flatMap((chart): Row[] =>
    chart.lines.map((line) => ({
      chart: chart.title,
      ...(summaryOf(line, points, chart.text) ?? { name: line.name, now: 'not measured', average: '', max: '' }),
    })),
  );
  return (
    <DataTable<Row>
      label="What the member uses"
      rows={rows}
      keyOf={(row) => `${row.chart} ${row.name}`}
      columns={[
        { head: 'Of', cell: (row) => (row.chart === row.name ? row.chart : `${row.chart}, ${row.name.toLowerCase()}`) },
        { head: 'Last', right: true, cell: (row) => <span className="num">{row.now}</span> },
        { head: 'Average', right: true, cell: (row) => <span className="num">{row.average}</span> },
        { head: 'At most', right: true, cell: (row) => <span className="num">{row.max}</span> },
      ]}
    />
  );
}
