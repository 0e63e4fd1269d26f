// Where a request is now, found by the correlation id of its error, its operation or its instance.
import { Link } from '@tanstack/react-router';
import { useRead } from '../api/hooks';
import type { ReactNode } from 'react';
import { moneyWord, ownerWord } from '../changes/words';
import { TriageReportDocument } from '../generated/graphql';
import type { TriageReportQuery } from '../generated/graphql';
import { operationName, words } from '../lib/format';
import { Icon } from '../ui/Icons';
import { Notice, ProblemPage } from '../ui/Problem';
import { BundleCard } from './TriageBundle';
import { NextCard } from './TriageNext';
import { Ago, Card, Copy, DataTable, Fact, Loading, PageHead } from '../ui/parts';

type Report = TriageReportQuery['triage'];

/** The page of a report. */
export function TriagePage({ id }: { id: string }) {
  const { data, problem, refresh } = useRead(TriageReportDocument, { id });
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
  return (
    <div className="page" data-triage={data.triage.stands}>
      <PageHead title={`Triage: ${asked(data.triage.asked)}`} lede={lede(data.triage)} />
      <TriageView report={data.triage} onDone={refresh} />
      <BundleCard id={id} />
    </div>
  );
}

/** The report itself. */
export function TriageView({ report, onDone = () => undefined }: { report: Report; onDone?: () => void }) {
  return (
    <>
      {report.code !== '' && (
        <Notice tone={report.stands === 'UNDER_WAY' ? 'busy' : 'bad'} icon="warn" role="status">
          <b>{report.message}</b>
          <div className="tail">
            <code>{report.code}</code>
            <span>{ownerWord(report.owner)}</span>
          </div>
        </Notice>
      )}
      {report.branch !== null && <BranchCard branch={report.branch} />}
      {report.next !== null && <NextCard next={report.next} onDone={onDone} />}
      <Card title="Request">
        <dl className="facts">
          <Fact term="Now">{words(report.stands)}</Fact>
          <Fact term="Reason">{report.reason === '' ? <span className="faint">—</span> : report.reason}</Fact>
          {report.operationId !== null && (
            <Fact term="Operation">
              <Link to="/operations/$id" params={{ id: report.operationId }} className="mono">
                {report.operationId}
              </Link>
            </Fact>
          )}
          {report.instanceId !== null && (
            <Fact term="Workload">
              <Link to="/workloads/$id" params={{ id: report.instanceId }} className="mono">
                {report.instanceId}
              </Link>
            </Fact>
          )}
          {report.costSoFar !== null && <Fact term="Cost so far">{moneyWord(report.costSoFar)}</Fact>}
          <Fact term="Correlation id">
            <Copy value={report.correlationId} what="correlation id" />
          </Fact>
          {report.traceId !== '' && (
            <Fact term="Trace">
              <Copy value={report.traceId} what="trace id" />
            </Fact>
          )}
          {report.links.length > 0 && (
            <Fact term="In your tools">
              {report.links.map((link) => (
                <div key={link.name}>
                  <Outside url={link.url}>{words(link.name)}</Outside>
                </div>
              ))}
            </Fact>
          )}
        </dl>
      </Card>
      {report.others.length > 0 && <OthersCard others={report.others} />}
      <Card title="Evidence" pad={false}>
        <Evidence rows={report.evidence} />
      </Card>
    </>
  );
}

function BranchCard({ branch }: { branch: NonNullable<Report['branch']> }) {
  return (
    <Card title="Runbook">
      <dl className="facts">
        <Fact term="Runbook">{branch.title}</Fact>
        {branch.section !== '' && <Fact term="Check">{branch.section}</Fact>}
        {branch.means !== '' && <Fact term="Means">{branch.means}</Fact>}
        {branch.do !== '' && <Fact term="Do">{branch.do}</Fact>}
        <Fact term="Branch">
          <span className="mono">{branch.ref}</span>
        </Fact>
      </dl>
    </Card>
  );
}

function Evidence({ rows }: { rows: Report['evidence'] }) {
  const numbered = rows.map((row, at) => ({ row, at }));
  return (
    <DataTable
      label="Evidence"
      keyOf={({ at }) => String(at)}
      rows={numbered}
      columns={[
        { head: 'When', cell: ({ row }) => <Ago at={row.at} /> },
        { head: 'Kind', cell: ({ row }) => words(row.kind) },
        { head: 'What', cell: ({ row }) => <code className="wrap-any">{row.what}</code> },
        { head: 'State', cell: ({ row }) => (row.state === '' ? '—' : words(row.state)) },
        { head: 'Message', cell: ({ row }) => <span className="wrap-any">{row.message}</span> },
        { head: 'See', cell: ({ row }) => <See link={row.link} /> },
      ]}
    />
  );
}

/** Other operations that the same correlation id names. */
function OthersCard({ others }: { others: Report['others'] }) {
  return (
    <Card title="Other operations with this correlation id" pad={false}>
      <DataTable
        label="Other operations"
        rows={others}
        keyOf={(row) => row.operationId}
        columns={[
          {
            head: 'Operation',
            cell: (row) => (
              <Link to="/triage/$id" params={{ id: row.operationId }}>
                {operationName(row.kind)}
              </Link>
            ),
          },
          { head: 'State', cell: (row) => words(row.state) },
          { head: 'Requested', cell: (row) => <Ago at={row.at} /> },
        ]}
      />
    </Card>
  );
}

/** Leads to a page of the console, or to one of the installation's own tools. */
function See({ link }: { link: string }) {
  if (link === '') return <span className="faint">—</span>;
  if (/^https?:/.test(link)) return <Outside url={link}>in your tools</Outside>;
  const { pathname, searchParams } = new URL(link, window.location.origin);
  return (
    <Link to={pathname} search={Object.fromEntries(searchParams)}>
      {pages[pathname.split('/')[1] ?? ''] ?? 'there'}
    </Link>
  );
}

const pages: Readonly<Record<string, string>> = {
  operations: 'the operation',
  workloads: 'the workload',
  allocations: 'the allocations',
  audit: 'the audit',
};

function Outside({ url, children }: { url: string; children: ReactNode }) {
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

/** A kind of operation in words; the name of a called field unchanged. */
function asked(what: string): string {
  return /^[A-Z_]+$/.test(what) ? operationName(what) : what;
}

function lede(report: Report) {
  return (
    <>
      requested by {report.requester.name} <Ago at={report.at} />
      <Icon name="right" size={12} /> {words(report.stands)}
    </>
  );
}
