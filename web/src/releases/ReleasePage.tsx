// One version on its way: stage, evidence, canary, history, and the steps that can be taken.
import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useRead } from '../api/hooks';
import { useMay } from '../api/useMay';
import { useSession } from '../api/session';
import { needsOf } from '../lib/capacity';
import { ReleaseDetailDocument } from '../generated/graphql';
import type { ReleaseDetailQuery } from '../generated/graphql';
import { bytes, shorten, words } from '../lib/format';
import { DeniedButton } from '../ui/Denied';
import { Icon } from '../ui/Icons';
import { Markdown } from '../ui/Markdown';
import { ProblemPage } from '../ui/Problem';
import { Status } from '../ui/Status';
import { Ago, Card, Copy, DataTable, Empty, Fact, Glyph, Json, Loading, PageHead } from '../ui/parts';
import { CanaryCard } from './CanaryCard';
import { EvidenceDialog } from './EvidenceDialog';
import { HistoryCard } from './HistoryCard';
import { Promises } from './Promises';
import { Lacks, PromoteDialog } from './PromoteDialog';
import { Runbooks } from './Runbooks';
import { TermsCard } from './TermsCard';
import { stepsFrom } from './stages';
import type { Step } from './stages';

type Release = Extract<ReleaseDetailQuery['node'], { __typename: 'Manifest' }>;

/** The page of a version. */
export function ReleasePage({ id }: { id: string }) {
  const { data, problem, refresh } = useRead(ReleaseDetailDocument, { id });
  const release = data?.node;
  if (release === undefined || release.__typename !== 'Manifest') {
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
  return <ReleaseView release={release} refresh={refresh} />;
}

function ReleaseView({ release, refresh }: { release: Release; refresh: () => void }) {
  const [step, setStep] = useState<Step>();
  const wasCanary = release.history.some((each) => each.to === 'CANARY');
  return (
    <div className="page">
      <PageHead
        title={`${release.appSlug} ${release.version}`}
        lede={release.summary}
        mark={<Glyph slug={release.appSlug} size={48} />}
        crumbs={
          <>
            <Link to="/releases">Releases</Link>
            <Icon name="right" size={12} />
            <Link to="/catalog/$slug" params={{ slug: release.appSlug }}>
              {release.appSlug}
            </Link>
          </>
        }
        actions={
          <>
            <Button
              variant="default"
              renderRoot={(props) => (
                <Link
                  {...props}
                  to="/onboarding/$slug"
                  params={{ slug: release.appSlug }}
                  search={{ version: release.version }}
                />
              )}
            >
              Onboarding
            </Button>
            <Steps release={release} onStep={setStep} />
          </>
        }
      />
      <div className="workload">
        <div className="stack">
          {release.lacks.length > 0 && <Lacks lacks={release.lacks} />}
          {wasCanary && <CanaryCard manifestId={release.id} running={release.stage === 'CANARY'} onChanged={refresh} />}
          <EvidenceCard release={release} onBrought={refresh} />
          <HistoryCard history={release.history} />
          {release.docs.trim() !== '' && (
            <Card title="Documentation">
              <Markdown text={release.docs} />
            </Card>
          )}
          <Card title="Document">
            <Json value={release.document} label="The manifest’s document" />
          </Card>
        </div>
        <Aside release={release} />
      </div>
      {step !== undefined && (
        <PromoteDialog
          release={release}
          step={step}
          lacks={release.lacks}
          onClose={() => setStep(undefined)}
          onDone={refresh}
        />
      )}
    </div>
  );
}

function Steps({ release, onStep }: { release: Release; onStep: (step: Step) => void }) {
  const may = useMay('manifest.promote', release.id);
  if (may === undefined) return null;
  if (!may)
    return (
      <>
        {stepsFrom(release.stage).map((step) => (
          <DeniedButton key={step.to} label={step.act} permissionKey="manifest.promote" objectId={release.id} />
        ))}
      </>
    );
  return (
    <>
      {stepsFrom(release.stage).map((step) => (
        <Button
          key={step.to}
          variant={step.danger ? 'light' : 'filled'}
          {...(step.danger ? { color: 'red' } : {})}
          onClick={() => onStep(step)}
        >
          {step.act}
        </Button>
      ))}
    </>
  );
}

type Report = Release['reports'][number];

function EvidenceCard({ release, onBrought }: { release: Release; onBrought: () => void }) {
  const { can } = useSession();
  const [asking, setAsking] = useState(false);
  const bring = can('manifest.publish') && release.stage === 'DRAFT';
  return (
    <Card
      title="Evidence"
      label="Evidence"
      pad={false}
      aside={
        bring && (
          <Button size="compact-xs" variant="default" onClick={() => setAsking(true)}>
            Submit a report
          </Button>
        )
      }
    >
      {release.reports.length === 0 && release.evidence === null && (
        <Empty icon="policy" title="None yet">
          Lint and smoke launch are recorded when it is staged; its publisher submits the reports.
        </Empty>
      )}
      {release.reports.length > 0 && (
        <DataTable<Report>
          label="Reports"
          rows={release.reports}
          keyOf={(row) => row.id}
          columns={[
            { head: 'Report', cell: (row) => <span className="strong">{words(row.kind)}</span> },
            {
              head: 'Outcome',
              cell: (row) => (
                <Status state={row.passed ? 'SUCCEEDED' : 'FAILED'} label={row.passed ? 'Passed' : 'Failed'} />
              ),
            },
            {
              head: 'Digest',
              cell: (row) => <Copy value={row.digest} shown={shorten(row.digest, 15, 4)} what="digest" />,
            },
            {
              head: 'Submitted',
              cell: (row) => (
                <span>
                  <Ago at={row.createdAt} />
                  <span className="sub">{row.submittedBy}</span>
                </span>
              ),
            },
            {
              head: 'Signed by',
              cell: (row) =>
                row.runnerId === '' ? (
                  <span className="faint">Its publisher’s own</span>
                ) : (
                  <Copy value={row.runnerId} shown={shorten(row.runnerId, 8, 4)} what="runner" />
                ),
            },
          ]}
        />
      )}
      {release.evidence !== null && (
        <div className="card-body">
          <Json value={release.evidence} label="What lint and smoke found" />
        </div>
      )}
      {asking && <EvidenceDialog manifestId={release.id} onClose={() => setAsking(false)} onDone={onBrought} />}
    </Card>
  );
}

function Aside({ release }: { release: Release }) {
  return (
    <div className="stack">
      <Card title="Version">
        <dl className="facts">
          <Fact term="Stage">
            <Status state={release.stage} />
          </Fact>
          <Fact term="Kind">{words(release.artifactKind)}</Fact>
          <Fact term="Needs">
            <span className="row">
              {needsOf(release.compatibility).map((need) => (
                <span key={need} className="tag">
                  {need}
                </span>
              ))}
            </span>
          </Fact>
          <Fact term="Digest">
            <Copy value={release.digest} shown={shorten(release.digest, 15, 4)} what="digest" />
          </Fact>
          <Fact term="Published">
            <Ago at={release.createdAt} />
          </Fact>
        </dl>
      </Card>
      <TermsCard slug={release.appSlug} stage={release.stage} kind={release.artifactKind} lacks={release.lacks} />
      <Card title="Artifacts">
        {release.artifacts.map((each) => (
          <div key={each.id} className="stack-s" style={{ gap: 2 }}>
            <div className="row">
              <Link to="/artifacts" search={{ id: each.id }} className="strong">
                {each.name}
              </Link>
              <Status state={each.stage} />
              {each.quarantinedAt !== null && <Status state="FAILED" label="Quarantine" />}
            </div>
            <span className="small faint">
              {bytes(each.sizeBytes)} · {words(each.signature)} · {each.smoked ? 'smoked' : 'not smoked'}
            </span>
          </div>
        ))}
      </Card>
      <Promises lifecycle={release.lifecycle} />
      <Runbooks runbooks={release.runbooks} />
    </div>
  );
}
