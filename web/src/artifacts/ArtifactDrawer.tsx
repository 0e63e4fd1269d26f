// One artifact: its source, its parts, the versions that pin it, and its actions.
import { Button, Drawer } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Problem } from '../api/errors';
import { tell, useRead } from '../api/hooks';
import { useSession } from '../api/session';
import {
  ArtifactDetailDocument,
  QuarantineArtifactDocument,
  ReleaseArtifactDocument,
  VerifyArtifactDocument,
} from '../generated/graphql';
import type { ArtifactDetailQuery } from '../generated/graphql';
import { bytes, shorten, words } from '../lib/format';
import { HistoryCard } from '../releases/HistoryCard';
import { stepsFrom } from '../releases/stages';
import type { Step } from '../releases/stages';
import { AskDialog } from '../changes/AskDialog';
import { Notice, ProblemNotice, ProblemPage } from '../ui/Problem';
import { Status } from '../ui/Status';
import { Ago, Copy, DataTable, Fact, Loading } from '../ui/parts';
import { PromoteArtifactDialog } from './PromoteArtifactDialog';
import { kindName, signatureState } from './signature';

type Artifact = Extract<ArtifactDetailQuery['node'], { __typename: 'Artifact' }>;
type Part = Artifact['parts'][number];

/** The drawer, open while there is an id. */
export function ArtifactDrawer({
  id,
  onClose,
  onChanged,
}: {
  id: string | undefined;
  onClose: () => void;
  onChanged: () => void;
}) {
  return (
    <Drawer opened={id !== undefined} onClose={onClose} position="right" size="lg" title={<b>Artifact</b>}>
      {id !== undefined && <Content key={id} id={id} onChanged={onChanged} />}
    </Drawer>
  );
}

function Content({ id, onChanged }: { id: string; onChanged: () => void }) {
  const { data, problem, refresh } = useRead(ArtifactDetailDocument, { id });
  const artifact = data?.node;
  if (artifact === undefined || artifact.__typename !== 'Artifact')
    return problem === undefined ? <Loading lines={8} /> : <ProblemPage problem={problem} onRetry={refresh} />;
  return (
    <View
      artifact={artifact}
      onChanged={() => {
        refresh();
        onChanged();
      }}
    />
  );
}

function View({ artifact, onChanged }: { artifact: Artifact; onChanged: () => void }) {
  return (
    <div className="stack" data-artifact={artifact.id}>
      <h2 className="wrap-any">{artifact.name}</h2>
      {artifact.quarantinedAt !== null && (
        <Notice tone="bad" icon="warn">
          <b>
            In quarantine since <Ago at={artifact.quarantinedAt} />.
          </b>{' '}
          <span className="said">{artifact.quarantineReason}</span>
          {artifact.quarantineCode !== '' && (
            <>
              {' '}
              <code>{artifact.quarantineCode}</code>
            </>
          )}
        </Notice>
      )}
      <Acts artifact={artifact} onChanged={onChanged} />
      <dl className="facts">
        <Fact term="Stage">
          <Status state={artifact.stage} />
        </Fact>
        <Fact term="Kind">
          {kindName(artifact.kind)}
          {artifact.platforms.length > 0 && <span className="faint"> for {artifact.platforms.join(', ')}</span>}
        </Fact>
        <Fact term="Media type">
          <code>{artifact.mediaType}</code>
        </Fact>
        <Fact term="Address">
          <Copy value={artifact.ref} what="address" />
        </Fact>
        <Fact term="Digest">
          <Copy value={artifact.digest} shown={shorten(artifact.digest, 19, 8)} what="digest" />
        </Fact>
        <Fact term="Size">{bytes(artifact.sizeBytes)}</Fact>
        <Fact term="Source">
          {artifact.source === null ? (
            <span className="faint">published before sources existed</span>
          ) : (
            <Link to="/sources">{artifact.source.name}</Link>
          )}
        </Fact>
        <Fact term="Signature">
          <Status state={signatureState(artifact.signature)} bare label={words(artifact.signature)} />
          {artifact.signedBy !== null && <span className="small faint"> by {artifact.signedBy.name}</span>}
        </Fact>
        <Fact term="Smoke of its kind">
          <Smokes artifact={artifact} />
        </Fact>
        <Fact term="Last checked">
          <Ago at={artifact.verifiedAt} />
        </Fact>
        <Fact term="Pinned by">
          {artifact.pinnedBy.length === 0 ? (
            <span className="faint">no version</span>
          ) : (
            <span className="row">
              {artifact.pinnedBy.map((each) => (
                <Link key={each.id} to="/releases/$id" params={{ id: each.id }}>
                  {each.appSlug} {each.version}
                </Link>
              ))}
            </span>
          )}
        </Fact>
      </dl>
      <div className="stack-s">
        <h3>Parts</h3>
        <DataTable<Part>
          label="Parts"
          rows={artifact.parts}
          keyOf={(row) => `${row.parent} ${row.digest} ${row.title}`}
          columns={partColumns}
        />
      </div>
      <HistoryCard history={artifact.history} />
    </div>
  );
}

function Smokes({ artifact }: { artifact: Artifact }) {
  const newest = artifact.smokes[0];
  return (
    <>
      <Status
        state={artifact.smoked ? 'SUCCEEDED' : 'PENDING'}
        bare
        label={artifact.smoked ? 'Passed' : 'No valid report'}
      />
      {newest !== undefined && (
        <span className="small faint">
          {' '}
          newest {newest.passed ? 'passed' : 'failed'} <Ago at={newest.createdAt} />, signed by{' '}
          {shorten(newest.runnerId, 8, 4)}
        </span>
      )}
    </>
  );
}

const partColumns = [
  {
    head: 'Part',
    cell: (row: Part) => (
      <span>
        {words(row.role)}
        <span className="sub wrap-any">
          {[row.title, row.platform, row.mediaType].filter((each) => each !== '').join(' · ')}
        </span>
      </span>
    ),
  },
  { head: 'Size', right: true, cell: (row: Part) => <span className="num">{bytes(row.sizeBytes)}</span> },
  { head: 'Digest', cell: (row: Part) => <Copy value={row.digest} shown={shorten(row.digest, 13, 4)} what="digest" /> },
];

type Asked = { what: 'quarantine' | 'release' } | { what: 'promote'; step: Step };

function Acts({ artifact, onChanged }: { artifact: Artifact; onChanged: () => void }) {
  const { can } = useSession();
  const [asked, setAsked] = useState<Asked>();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const free = artifact.quarantinedAt === null;
  const verify = async () => {
    setBusy(true);
    const answer = await tell(VerifyArtifactDocument, { artifactId: artifact.id });
    setBusy(false);
    setProblem(answer.problem);
    onChanged();
  };
  const close = () => setAsked(undefined);
  return (
    <div className="stack-s">
      <div className="row" role="group" aria-label="Actions">
        {can('artifact.promote') &&
          free &&
          stepsFrom(artifact.stage).map((step) => (
            <Button
              key={step.to}
              size="xs"
              variant={step.danger ? 'light' : 'filled'}
              {...(step.danger ? { color: 'red' } : {})}
              onClick={() => setAsked({ what: 'promote', step })}
            >
              {words(step.to)}
            </Button>
          ))}
        {can('artifact.publish') && (
          <Button size="xs" variant="default" loading={busy} onClick={() => void verify()}>
            Verify it again
          </Button>
        )}
        {can('artifact.quarantine') && (
          <Button size="xs" variant="default" onClick={() => setAsked({ what: free ? 'quarantine' : 'release' })}>
            {free ? 'Quarantine' : 'Release from quarantine'}
          </Button>
        )}
      </div>
      {problem !== undefined && <ProblemNotice problem={problem} />}
      {asked?.what === 'promote' && (
        <PromoteArtifactDialog artifact={artifact} step={asked.step} onClose={close} onDone={onChanged} />
      )}
      {asked?.what === 'quarantine' && (
        <AskDialog
          title={`Quarantine ${artifact.name}`}
          act="Quarantine"
          danger
          reasonNeeded
          send={(reason) => tell(QuarantineArtifactDocument, { artifactId: artifact.id, reason: reason ?? '' })}
          onClose={close}
          onDone={onChanged}
        >
          No version can pin it, and it is no longer delivered to nodes. Running workloads continue.
        </AskDialog>
      )}
      {asked?.what === 'release' && (
        <AskDialog
          title={`Release ${artifact.name} from quarantine`}
          act="Release"
          danger
          reasonNeeded
          send={(reason) => tell(ReleaseArtifactDocument, { artifactId: artifact.id, reason: reason ?? '' })}
          onClose={close}
          onDone={onChanged}
        >
          It is delivered to nodes again, despite the reason for its quarantine: {artifact.quarantineReason}
        </AskDialog>
      )}
    </div>
  );
}
