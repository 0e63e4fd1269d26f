// The apps that can be launched.
import { Button, TextInput } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { useSettled } from '../api/hooks';
import { useRows } from '../api/pages';
import { useProjectId, useSession } from '../api/session';
import { CatalogDocument } from '../generated/graphql';
import type { CatalogQuery } from '../generated/graphql';
import { headOf } from '../lib/places';
import { Icon } from '../ui/Icons';
import { ProblemPage } from '../ui/Problem';
import { More } from '../ui/Rows';
import { AppIcon, Empty, Loading, PageHead } from '../ui/parts';
import { needsOf } from '../lib/capacity';

type App = CatalogQuery['apps']['edges'][number]['node'];
const pick = (data: CatalogQuery) => data.apps;

/** The catalog with search. */
export function CatalogPage() {
  const projectId = useProjectId();
  const [typed, setTyped] = useState('');
  const search = useSettled(typed.trim());
  const variables = useMemo(
    () => ({ projectId, search: search === '' ? null : search.slice(0, 100) }),
    [projectId, search],
  );
  const list = useRows(CatalogDocument, variables, pick);
  return (
    <div className="page">
      <PageHead
        {...headOf('/catalog')}
        actions={
          <TextInput
            aria-label="Search apps"
            placeholder="Search apps"
            type="search"
            w={260}
            maxLength={100}
            leftSection={<Icon name="search" size={15} />}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
          />
        }
      />
      {list.loading && (
        <div className="card">
          <Loading lines={5} />
        </div>
      )}
      {list.problem !== undefined && list.rows.length === 0 && !list.loading && (
        <ProblemPage problem={list.problem} onRetry={list.refresh} />
      )}
      {!list.loading && list.problem === undefined && list.rows.length === 0 && (
        <div className="card">
          {search === '' ? (
            <Empty icon="catalog" title="The catalog is empty">
              An app appears here once its publisher has promoted a version to active.
            </Empty>
          ) : (
            <Empty icon="search" title="No app matches">
              No app is named “{search}”.
            </Empty>
          )}
        </div>
      )}
      <div className="grid-cards">
        {list.rows.map((app) => (
          <AppCard key={app.id} app={app} />
        ))}
      </div>
      <More list={list} />
    </div>
  );
}

/** States that an app is in a sandbox: the platform's staff has not opened it to others. */
export function SandboxTag({ entitled }: { entitled: boolean }) {
  return <span className="tag">{entitled ? 'Only your project' : 'Only another project'}</span>;
}

function AppCard({ app }: { app: App }) {
  const { can } = useSession();
  const manifest = app.activeManifest;
  const launchable = manifest !== null && app.entitled && can(`${app.permissionFamily}.instance.create`);
  return (
    <article className="card app-card" data-app={app.slug}>
      <div className="row" style={{ flexWrap: 'nowrap', gap: 12 }}>
        <AppIcon slug={app.slug} icon={app.icon} />
        <div className="grow">
          <h2>
            <Link to="/catalog/$slug" params={{ slug: app.slug }}>
              {app.displayName}
            </Link>
          </h2>
          <span className="small faint">
            {app.slug}
            {manifest !== null && ` · ${manifest.version}`}
            {app.canaryManifest !== null &&
              app.canaryManifest.canaryHaltedAt === null &&
              ` · ${app.canaryManifest.version} in canary`}
          </span>
        </div>
      </div>
      <p>{app.summary}</p>
      <div className="row">
        {app.sandbox && <SandboxTag entitled={app.entitled} />}
        {app.system && <span className="tag">system app</span>}
        {needsOf(manifest?.compatibility).map((need) => (
          <span key={need} className="tag">
            {need}
          </span>
        ))}
      </div>
      <div className="foot">
        <span className="small faint">
          {manifest === null
            ? 'No active version'
            : app.entitled
              ? 'Enabled for this project'
              : 'Not enabled for this project'}
        </span>
        {launchable && (
          <Button
            renderRoot={(props) => <Link {...props} to="/launch/$slug" params={{ slug: app.slug }} />}
            size="compact-sm"
          >
            Launch
          </Button>
        )}
      </div>
    </article>
  );
}
