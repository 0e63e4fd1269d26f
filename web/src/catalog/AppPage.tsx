// One app: what it is, its versions, what it can do.
import { Button, Tooltip } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useRead } from '../api/hooks';
import { useProjectId, useSession } from '../api/session';
import { AppDetailDocument } from '../generated/graphql';
import type { AppDetailQuery } from '../generated/graphql';
import { bytes, shorten } from '../lib/format';
import { Promises } from '../releases/Promises';
import { Runbooks } from '../releases/Runbooks';
import { Icon } from '../ui/Icons';
import { Markdown } from '../ui/Markdown';
import { Notice, ProblemPage } from '../ui/Problem';
import { Status } from '../ui/Status';
import { Ago, AppIcon, Card, Copy, DataTable, Empty, Fact, Loading, PageHead } from '../ui/parts';
import { needsOf } from '../lib/capacity';

type App = AppDetailQuery['app'];
type Version = App['manifests']['edges'][number]['node'];
type Active = NonNullable<App['activeManifest']>;

/** The page of an app. */
export function AppPage({ slug }: { slug: string }) {
  const projectId = useProjectId();
  const { data, problem, refresh } = useRead(AppDetailDocument, { slug, projectId });
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
  return <AppView app={data.app} />;
}

function AppView({ app }: { app: App }) {
  const active = app.activeManifest;
  return (
    <div className="page">
      <PageHead
        title={app.displayName}
        lede={app.summary}
        mark={<AppIcon slug={app.slug} icon={app.icon} size={48} />}
        crumbs={
          <>
            <Link to="/catalog">Catalog</Link>
            <Icon name="right" size={12} />
            <span>{app.slug}</span>
          </>
        }
        actions={
          <>
            <OnboardingLink app={app} />
            <LaunchButton app={app} />
          </>
        }
      />
      {app.sandbox && (
        <Notice tone="idle" icon="info">
          This app is in a sandbox: only the project that created it can launch it, and no other tenant sees it, until
          the platform’s staff opens it.
        </Notice>
      )}
      {app.system && (
        <Notice tone="idle" icon="info">
          This is a system app: the platform’s operator runs it, in the platform’s own tenant. No tenant sees it, and no
          one is billed for it.
        </Notice>
      )}
      {!app.entitled && !app.system && (
        <Notice tone="warn" icon="info">
          This app is not enabled for the project. Someone with the key <code>entitlement.manage</code> can enable it.
        </Notice>
      )}
      <div className="workload">
        <div className="stack">
          <Card title="About">
            {active === null || active.docs.trim() === '' ? (
              <p className="soft">
                The publisher provides no documentation{active === null ? ': there is no active version yet' : ''}.
              </p>
            ) : (
              <Markdown text={active.docs} />
            )}
          </Card>
          <Versions app={app} />
        </div>
        {active !== null && <Aside active={active} />}
      </div>
    </div>
  );
}

/** A link to the onboarding, for people who may read it: the app's publisher, and the platform's staff. */
function OnboardingLink({ app }: { app: App }) {
  const { can } = useSession();
  const projectId = useProjectId();
  const own = app.publisherProjectId === projectId || can('gap.decide');
  if (!own || !can('manifest.read')) return null;
  return (
    <Button
      variant="default"
      renderRoot={(props) => <Link {...props} to="/onboarding/$slug" params={{ slug: app.slug }} />}
    >
      Onboarding
    </Button>
  );
}

function LaunchButton({ app }: { app: App }) {
  const { can } = useSession();
  const key = `${app.permissionFamily}.instance.create`;
  const why =
    app.activeManifest === null
      ? 'There is no active version'
      : !app.entitled
        ? 'Not enabled for this project'
        : can(key)
          ? ''
          : `You need the permission ${key}`;
  if (why !== '')
    return (
      <Tooltip label={why}>
        <Button
          data-disabled
          leftSection={<Icon name="launch" size={15} />}
          onClick={(event) => event.preventDefault()}
        >
          Launch
        </Button>
      </Tooltip>
    );
  return (
    <Button
      renderRoot={(props) => <Link {...props} to="/launch/$slug" params={{ slug: app.slug }} />}
      leftSection={<Icon name="launch" size={15} />}
    >
      Launch
    </Button>
  );
}

function Versions({ app }: { app: App }) {
  const versions = app.manifests.edges.map((edge) => edge.node);
  return (
    <Card title="Versions" pad={false} label="Versions">
      {versions.length === 0 ? (
        <Empty icon="catalog" title="No versions published" />
      ) : (
        <DataTable<Version>
          label="Versions"
          rows={versions}
          keyOf={(row) => row.id}
          columns={[
            {
              head: 'Version',
              cell: (row) => (
                <Link to="/releases/$id" params={{ id: row.id }} className="strong">
                  {row.version}
                </Link>
              ),
            },
            {
              head: 'Stage',
              cell: (row) => (
                <span className="row">
                  <Status state={row.stage} />
                  {row.stage === 'CANARY' && (
                    <span className="small faint">
                      {row.canaryHaltedAt === null ? `${row.canaryPercent} % of the projects` : 'halted'}
                    </span>
                  )}
                </span>
              ),
            },
            {
              head: 'Digest',
              cell: (row) => <Copy value={row.digest} shown={shorten(row.digest, 15, 4)} what="digest" />,
            },
            { head: 'Published', cell: (row) => <Ago at={row.createdAt} /> },
          ]}
        />
      )}
    </Card>
  );
}

function Aside({ active }: { active: Active }) {
  return (
    <div className="stack">
      <Card title={`Version ${active.version}`}>
        <dl className="facts">
          <Fact term="Needs">
            <span className="row">
              {needsOf(active.compatibility).map((need) => (
                <span key={need} className="tag">
                  {need}
                </span>
              ))}
            </span>
          </Fact>
          {active.components.map((each) => (
            <Fact key={each.key} term={each.displayName}>
              {each.min === each.max ? each.min : `${each.min} to ${each.max}`}
              <span className="faint">, {each.default} by default</span>
            </Fact>
          ))}
          <Fact term="Digest">
            <Copy value={active.digest} shown={shorten(active.digest, 15, 4)} what="digest" />
          </Fact>
        </dl>
      </Card>
      {active.actions.length > 0 && (
        <Card title="What it can do">
          <ul className="stack-s" style={{ listStyle: 'none', padding: 0 }}>
            {active.actions.map((action) => (
              <li key={action.name}>
                <span className="strong">{action.displayName}</span>{' '}
                <span className="tag">{action.risk.toLowerCase()}</span>
                <div className="small faint mono">{action.permissionKey}</div>
              </li>
            ))}
          </ul>
        </Card>
      )}
      <Promises lifecycle={active.lifecycle} />
      <Runbooks runbooks={active.runbooks} />
      {active.artifacts.length > 0 && (
        <Card title="Artifacts">
          {active.artifacts.map((each) => (
            <div key={each.id} className="stack-s" style={{ gap: 2 }}>
              <div className="row">
                <span className="strong">{each.name}</span>
                <Status state={each.stage} />
                <span className="small faint">{bytes(each.sizeBytes)}</span>
              </div>
              <Copy value={each.ref} shown={shorten(each.digest, 15, 4)} what="reference" />
            </div>
          ))}
        </Card>
      )}
    </div>
  );
}
