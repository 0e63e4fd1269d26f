// The promotion board: every version of every app in the column of its stage.
import { Button, TextInput } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { useSettled } from '../api/hooks';
import { useRows } from '../api/pages';
import { useSession } from '../api/session';
import { ReleasesDocument } from '../generated/graphql';
import type { ReleasesQuery, Stage } from '../generated/graphql';
import { plural, words } from '../lib/format';
import { headOf } from '../lib/places';
import { Icon } from '../ui/Icons';
import { ProblemPage } from '../ui/Problem';
import { More } from '../ui/Rows';
import { Status } from '../ui/Status';
import { Ago, Empty, Glyph, Loading, PageHead } from '../ui/parts';
import { RunnersCard } from './RunnersCard';
import { stages } from './stages';

type Release = ReleasesQuery['manifests']['edges'][number]['node'];
const pick = (data: ReleasesQuery) => data.manifests;

/** The board with search; a card opens the version. */
export function ReleasesPage() {
  const { can } = useSession();
  const [typed, setTyped] = useState('');
  const search = useSettled(typed.trim());
  const list = useRows(
    ReleasesDocument,
    useMemo(() => ({ search: search === '' ? null : search.slice(0, 100), appSlug: null }), [search]),
    pick,
  );
  return (
    <div className="page wide">
      <PageHead
        {...headOf('/releases')}
        actions={
          <>
            <TextInput
              aria-label="Search versions"
              placeholder="Search versions"
              type="search"
              w={220}
              maxLength={100}
              leftSection={<Icon name="search" size={15} />}
              value={typed}
              onChange={(event) => setTyped(event.currentTarget.value)}
            />
            {can('manifest.publish') && (
              <Button
                leftSection={<Icon name="plus" size={14} />}
                renderRoot={(props) => <Link {...props} to="/publish" />}
              >
                Publish a version
              </Button>
            )}
          </>
        }
      />
      {list.loading && (
        <div className="card">
          <Loading lines={6} />
        </div>
      )}
      {list.problem !== undefined && list.rows.length === 0 && !list.loading && (
        <ProblemPage problem={list.problem} onRetry={list.refresh} />
      )}
      {!list.loading && list.problem === undefined && list.rows.length === 0 && (
        <div className="card">
          <Empty icon="catalog" title={search === '' ? 'No versions published' : 'No version matches'}>
            Publishers add versions as drafts.
          </Empty>
        </div>
      )}
      {list.rows.length > 0 && (
        <div className="board">
          {stages.map((stage) => (
            <Column key={stage} stage={stage} rows={list.rows.filter((row) => row.stage === stage)} />
          ))}
        </div>
      )}
      <More list={list} />
      {can('manifest.read') && <RunnersCard />}
    </div>
  );
}

function Column({ stage, rows }: { stage: Stage; rows: readonly Release[] }) {
  return (
    <section className="board-column" aria-label={words(stage)} data-stage={stage}>
      <h2>
        <Status state={stage} bare /> <span className="small faint num">{rows.length}</span>
      </h2>
      {rows.map((row) => (
        <ReleaseCard key={row.id} row={row} />
      ))}
      {rows.length === 0 && <p className="small faint">None</p>}
    </section>
  );
}

function ReleaseCard({ row }: { row: Release }) {
  return (
    <article className="card board-card" data-release={row.id}>
      <div className="row" style={{ flexWrap: 'nowrap', gap: 10 }}>
        <Glyph slug={row.appSlug} size={28} />
        <div className="grow">
          <h3>
            <Link to="/releases/$id" params={{ id: row.id }}>
              {row.appSlug} {row.version}
            </Link>
          </h3>
          <span className="small faint">
            {words(row.artifactKind)} · <Ago at={row.createdAt} />
          </span>
        </div>
      </div>
      {row.stage === 'CANARY' && (
        <Status
          state={row.canaryHaltedAt === null ? 'CANARY' : 'FAILED'}
          label={row.canaryHaltedAt === null ? `${row.canaryPercent} % of the projects` : 'Halted'}
        />
      )}
      {row.lacks.length > 0 && (
        <span className="small soft" title={row.lacks.map((reason) => reason.message).join('\n')}>
          {plural(row.lacks.length, 'thing')} missing for its next stage
        </span>
      )}
    </article>
  );
}
