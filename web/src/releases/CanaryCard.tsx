// How a canary compares with the active version, and the button that changes its share.
import { Button } from '@mantine/core';
import { useState } from 'react';
import { tell, useRead } from '../api/hooks';
import { useMay } from '../api/useMay';
import { ChangeDialog } from '../changes/ChangeDialog';
import { CanaryReportDocument, SetCanaryPercentDocument } from '../generated/graphql';
import type { ArmBitsFragment, CanaryReportQuery } from '../generated/graphql';
import { duration } from '../lib/format';
import { Notice, ProblemNotice } from '../ui/Problem';
import { Status } from '../ui/Status';
import { Ago, Card, DataTable, Loading } from '../ui/parts';
import { linesOf, percentOf } from './chart';
import { ShareField, shareProblem } from './share';

type Report = CanaryReportQuery['canaryReport'];
type Arm = ArmBitsFragment & { readonly name: string };

const verdicts: Readonly<Record<Report['verdict'], { state: string; text: string }>> = {
  TOO_EARLY: { state: 'PENDING', text: 'Too early to tell' },
  NO_WORSE: { state: 'ACTIVE', text: 'No sign of more failures' },
  WORSE: { state: 'FAILED', text: 'Clearly more failures' },
};

/** The card; `running` while the version is in stage CANARY: only then its share can be changed. */
export function CanaryCard({
  manifestId,
  running,
  onChanged,
}: {
  manifestId: string;
  running: boolean;
  onChanged: () => void;
}) {
  const may = useMay('manifest.promote', manifestId);
  const [asking, setAsking] = useState(false);
  const { data, problem, refresh } = useRead(CanaryReportDocument, { manifestId });
  if (problem?.code === 'FORBIDDEN')
    return (
      <Card title="Canary">
        <p className="soft">The results of its canary are shown to the app’s publisher and to the platform’s staff.</p>
      </Card>
    );
  if (data === undefined)
    return (
      <Card title="Canary">
        {problem === undefined ? <Loading /> : <ProblemNotice problem={problem} onRetry={refresh} />}
      </Card>
    );
  const report = data.canaryReport;
  const verdict = verdicts[report.verdict];
  return (
    <Card
      title="Canary"
      label="Canary"
      aside={
        <span className="row">
          <Status state={verdict.state} label={verdict.text} />
          {running && may === true && (
            <Button size="compact-xs" variant="default" onClick={() => setAsking(true)}>
              Change the share
            </Button>
          )}
        </span>
      }
    >
      <div className="stack">
        {report.haltedAt !== null && (
          <Notice tone="bad" icon="warn" role="alert">
            <b>
              Halted <Ago at={report.haltedAt} />.
            </b>{' '}
            <span className="said">{report.haltReason}</span> New launches do not get it. Roll it back, or start again
            once it is fixed.
          </Notice>
        )}
        <p className="soft">
          {running ? (
            <>
              {report.percent} % of the projects, since <Ago at={report.startedAt} />.
            </>
          ) : (
            <>
              It has ended; it started <Ago at={report.startedAt} />.
            </>
          )}
        </p>
        <Chart report={report} />
        <Arms report={report} />
      </div>
      {asking && (
        <ShareDialog
          manifestId={manifestId}
          percent={report.percent}
          onClose={() => setAsking(false)}
          onDone={() => {
            refresh();
            onChanged();
          }}
        />
      )}
    </Card>
  );
}

const width = 640;
const height = 150;

function Chart({ report }: { report: Report }) {
  if (report.points.length === 0) return <p className="small faint">No launch has ended since it started.</p>;
  const lines = linesOf(report.points, report.threshold, width, height);
  const last = report.points.at(-1);
  const text =
    last === undefined
      ? ''
      : `Failed launches: canary ${last.canaryFailed} of ${last.canaryLaunches}, active ${last.activeFailed} of ${last.activeLaunches}.`;
  return (
    <figure className="chart">
      <svg viewBox={`-4 -6 ${width + 8} ${height + 12}`} role="img" aria-label={text} preserveAspectRatio="none">
        {[0, 0.5, 1].map((share) => (
          <line key={share} x1="0" x2={width} y1={height * share} y2={height * share} className="grid" />
        ))}
        <polyline points={lines.evidence} className="evidence" />
        <polyline points={lines.active} className="active" />
        <polyline points={lines.canary} className="canary" />
      </svg>
      <figcaption className="small">
        <span className="key canary">Failed launches of the canary</span>
        <span className="key active">Failed launches of the active version</span>
        <span className="key evidence">Evidence; the canary is halted at the top</span>
      </figcaption>
    </figure>
  );
}

function Arms({ report }: { report: Report }) {
  const arms: Arm[] = [
    { ...report.canary, name: 'Canary' },
    ...(report.active === null ? [] : [{ ...report.active, name: 'Active' }]),
  ];
  return (
    <DataTable<Arm>
      label="Canary and active version"
      rows={arms}
      keyOf={(row) => row.name}
      columns={[
        {
          head: '',
          cell: (row) => (
            <span>
              <span className="strong">{row.name}</span> <span className="small faint">{row.manifest.version}</span>
            </span>
          ),
        },
        {
          head: 'Launches',
          right: true,
          cell: (row) => (
            <span className="num">
              {row.launches}
              {row.pending > 0 && <span className="faint"> + {row.pending} in progress</span>}
            </span>
          ),
        },
        {
          head: 'Failed',
          right: true,
          cell: (row) => (
            <span className="num">
              {row.failed} <span className="faint">({percentOf(row.failureRate)})</span>
            </span>
          ),
        },
        {
          head: 'Operations failed',
          right: true,
          cell: (row) => (
            <span className="num">
              {row.operationsFailed} of {row.operations}
            </span>
          ),
        },
        {
          head: 'Time to running',
          right: true,
          cell: (row) => (
            <span className="num">
              {seconds(row.timeToRunningP50)}
              <span className="faint"> / {seconds(row.timeToRunningP90)}</span>
              <span className="sub">median / 90th percentile</span>
            </span>
          ),
        },
      ]}
    />
  );
}

function seconds(value: number | null): string {
  return value === null ? '—' : duration(value * 1_000);
}

function ShareDialog({
  manifestId,
  percent,
  onClose,
  onDone,
}: {
  manifestId: string;
  percent: number;
  onClose: () => void;
  onDone: () => void;
}) {
  const [share, setShare] = useState<number | string>(percent);
  const bad = shareProblem(share);
  const wrong = new Map(bad === undefined ? [] : [['percent', bad]]);
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: 'Change the canary’s share',
        act: 'Save',
        fields: ['percent'],
        wrong,
        reasonNeeded: true,
        intro: 'Running workloads continue either way.',
        send: ({ reason }) =>
          tell(SetCanaryPercentDocument, { manifestId, percent: Number(share), reason: reason ?? '' }),
        form: (errors) => <ShareField value={share} onChange={setShare} error={errors.get('percent')} />,
      }}
    />
  );
}
