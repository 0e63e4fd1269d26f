// Whether a version of an app is ready for every tenant: the seven conditions, each with its evidence and its date.
import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { tell, useRead } from '../api/hooks';
import { useSession } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import { AppOnboardingDocument, CheckAppOnboardingDocument } from '../generated/graphql';
import type { AppOnboardingQuery, CheckBitsFragment, RecordBitsFragment } from '../generated/graphql';
import { plural } from '../lib/format';
import { Icon } from '../ui/Icons';
import { Notice, ProblemPage } from '../ui/Problem';
import { Status } from '../ui/Status';
import { Ago, Card, DataTable, Empty, Fact, Loading, PageHead } from '../ui/parts';
import { Reference } from './Reference';
import { conditions } from './words';

type Onboarding = AppOnboardingQuery['appOnboarding'];

/** The page of an app's version; without a version, of the active one or else the newest. */
export function OnboardingPage({ slug, version }: { slug: string; version: string | undefined }) {
  const { data, problem, refresh } = useRead(AppOnboardingDocument, { appSlug: slug, version: version ?? null });
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
  return <OnboardingView found={data.appOnboarding} refresh={refresh} />;
}

function OnboardingView({ found, refresh }: { found: Onboarding; refresh: () => void }) {
  const { can } = useSession();
  const [keeping, setKeeping] = useState(false);
  const lacking = found.checks.filter((each) => each.verdict !== 'PASSED').length;
  return (
    <div className="page" data-onboarding={found.passed ? 'passed' : 'lacking'}>
      <PageHead
        title={`Onboarding of ${found.appSlug} ${found.version}`}
        lede="What is recorded about this version for the seven conditions that every app meets before all tenants get it."
        crumbs={
          <>
            <Link to="/catalog/$slug" params={{ slug: found.appSlug }}>
              {found.appSlug}
            </Link>
            <Icon name="right" size={12} />
            <Link to="/releases/$id" params={{ id: found.manifestId }}>
              {found.version}
            </Link>
          </>
        }
        actions={can('manifest.smoke') && <Button onClick={() => setKeeping(true)}>Check and keep</Button>}
      />
      {found.passed ? (
        <Notice tone="good" icon="check">
          All seven conditions have passed.
        </Notice>
      ) : (
        <Notice tone={found.required ? 'warn' : 'idle'} icon="info">
          {plural(lacking, 'condition')} not passed.{' '}
          {found.required ? 'The app’s terms need all of them before ACTIVE.' : 'The app’s terms do not need them.'}
        </Notice>
      )}
      {found.checks.map((each) => (
        <CheckCard key={each.condition} check={each} />
      ))}
      <Records records={found.records} />
      {keeping && <KeepDialog found={found} onClose={() => setKeeping(false)} onDone={refresh} />}
    </div>
  );
}

function CheckCard({ check }: { check: CheckBitsFragment }) {
  const rows = check.evidence.map((row, at) => ({ row, at }));
  return (
    <Card
      title={conditions[check.condition]}
      label={check.condition}
      aside={<Status state={check.verdict} />}
      pad={false}
    >
      <div className="card-body stack-s">
        <div>{check.message}</div>
        {check.remedy !== '' && <div className="small soft">{check.remedy}</div>}
        <dl className="facts">
          {check.at !== null && (
            <Fact term="As of">
              <Ago at={check.at} />
            </Fact>
          )}
          {check.gapId !== null && (
            <Fact term="Gap">
              <Reference id={check.gapId} />
            </Fact>
          )}
        </dl>
      </div>
      {rows.length > 0 && (
        <DataTable
          label={`Evidence for ${check.condition}`}
          keyOf={({ at }) => String(at)}
          rows={rows}
          columns={[
            { head: 'What', cell: ({ row }) => row.what },
            { head: 'State', cell: ({ row }) => row.state },
            { head: 'When', cell: ({ row }) => (row.at === null ? '' : <Ago at={row.at} />) },
            { head: 'Where', cell: ({ row }) => <Reference id={row.id} url={row.url} /> },
          ]}
        />
      )}
    </Card>
  );
}

function Records({ records }: { records: readonly RecordBitsFragment[] }) {
  return (
    <Card title="Checks that were kept" label="Records" pad={false}>
      {records.length === 0 ? (
        <Empty icon="policy" title="None yet">
          A check that is kept is stored with its date, and what failed is noted in the gap log.
        </Empty>
      ) : (
        <DataTable
          label="Records"
          keyOf={(row) => row.id}
          rows={records}
          columns={[
            { head: 'Checked', cell: (row) => <Ago at={row.checkedAt} /> },
            { head: 'Result', cell: (row) => <Status state={row.passed ? 'PASSED' : 'FAILED'} /> },
            {
              head: 'Not passed',
              cell: (row) =>
                row.checks
                  .filter((each) => each.verdict !== 'PASSED')
                  .map((each) => each.condition)
                  .join(', '),
            },
            { head: 'By', cell: (row) => row.checkedBy.name },
            { head: 'Reason', cell: (row) => row.reason },
          ]}
        />
      )}
    </Card>
  );
}

function KeepDialog({ found, onClose, onDone }: { found: Onboarding; onClose: () => void; onDone: () => void }) {
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Check ${found.appSlug} ${found.version}`,
        act: 'Check and keep',
        fields: [],
        reasonNeeded: false,
        intro:
          'The seven conditions are checked once more, and the result is kept with its date. A condition that failed is noted in the gap log.',
        send: ({ reason }) =>
          tell(CheckAppOnboardingDocument, {
            input: { appSlug: found.appSlug, version: found.version, reason: reason ?? '' },
          }),
        form: () => null,
      }}
    />
  );
}
