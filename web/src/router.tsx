// The console's pages by path.
import { Outlet, createRootRoute, createRoute, createRouter, redirect } from '@tanstack/react-router';
import { AccessPage } from './access/AccessPage';
import { AllocationsPage } from './allocations/AllocationsPage';
import { ArtifactsPage } from './artifacts/ArtifactsPage';
import { AuditPage } from './audit/AuditPage';
import { AppPage } from './catalog/AppPage';
import { CatalogPage } from './catalog/CatalogPage';
import { CostsPage } from './costs/CostsPage';
import { PlatformCostsPage } from './costs/PlatformCostsPage';
import { LaunchPage } from './launch/LaunchPage';
import { refusalOf } from './login/codes';
import { LoginPage } from './login/LoginPage';
import { NodePage } from './nodes/NodePage';
import { NodesPage } from './nodes/NodesPage';
import { GapsPage } from './onboarding/GapsPage';
import { OnboardingPage } from './onboarding/OnboardingPage';
import { OperationPage } from './operations/OperationPage';
import { OperationsPage } from './operations/OperationsPage';
import { TriagePage } from './operations/TriagePage';
import { OrphansPage } from './orphans/OrphansPage';
import { PolicyPage } from './policy/PolicyPage';
import { PublishPage } from './releases/PublishPage';
import { ReleasePage } from './releases/ReleasePage';
import { ReleasesPage } from './releases/ReleasesPage';
import { SharingPage } from './sharing/SharingPage';
import { Shell } from './shell/Shell';
import { BrokenPage, MissingPage } from './shell/Fallbacks';
import { SourcesPage } from './sources/SourcesPage';
import { WebhooksPage } from './webhooks/WebhooksPage';
import { WorkloadPage } from './workloads/WorkloadPage';
import { WorkloadsPage } from './workloads/WorkloadsPage';

/** Reads text parameters of the address; anything else in it is dropped. */
function texts<Key extends string>(search: Record<string, unknown>, ...keys: Key[]): Partial<Record<Key, string>> {
  const found = keys.flatMap((key) => {
    const value = search[key];
    return typeof value === 'string' || typeof value === 'number' ? [[key, String(value)] as const] : [];
  });
  return Object.fromEntries(found) as Partial<Record<Key, string>>;
}

const root = createRootRoute({ component: Outlet, notFoundComponent: MissingPage, errorComponent: BrokenPage });

const loginRoute = createRoute({
  getParentRoute: () => root,
  path: '/login',
  validateSearch: (search: Record<string, unknown>) =>
    texts(search, 'reason', 'next', 'error', 'message', 'correlation_id'),
  component: function Login() {
    const { reason, next, error, message, correlation_id: correlationId } = loginRoute.useSearch();
    return <LoginPage reason={reason} next={next} refused={refusalOf(error, message, correlationId)} />;
  },
});

const shell = createRoute({ getParentRoute: () => root, id: 'shell', component: Shell });

const index = createRoute({
  getParentRoute: () => shell,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/workloads' }) as unknown as Error;
  },
});

const catalog = createRoute({ getParentRoute: () => shell, path: '/catalog', component: CatalogPage });

const app = createRoute({
  getParentRoute: () => shell,
  path: '/catalog/$slug',
  component: function App() {
    return <AppPage key={app.useParams().slug} slug={app.useParams().slug} />;
  },
});

const launch = createRoute({
  getParentRoute: () => shell,
  path: '/launch/$slug',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'version'),
  component: function Launch() {
    const { slug } = launch.useParams();
    const { version } = launch.useSearch();
    return <LaunchPage key={`${slug} ${version ?? ''}`} slug={slug} version={version} />;
  },
});

const allocations = createRoute({ getParentRoute: () => shell, path: '/allocations', component: AllocationsPage });

const workloads = createRoute({
  getParentRoute: () => shell,
  path: '/workloads',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'show', 'q'),
  component: function Workloads() {
    const { show, q } = workloads.useSearch();
    return <WorkloadsPage show={show} search={q} />;
  },
});

const workload = createRoute({
  getParentRoute: () => shell,
  path: '/workloads/$id',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'tab', 'of'),
  component: function Workload() {
    const { id } = workload.useParams();
    const { tab, of } = workload.useSearch();
    return <WorkloadPage key={id} id={id} tab={tab} of={of} />;
  },
});

const operations = createRoute({ getParentRoute: () => shell, path: '/operations', component: OperationsPage });

const operation = createRoute({
  getParentRoute: () => shell,
  path: '/operations/$id',
  component: function Operation() {
    return <OperationPage key={operation.useParams().id} id={operation.useParams().id} />;
  },
});

const triage = createRoute({
  getParentRoute: () => shell,
  path: '/triage/$id',
  component: function Triage() {
    return <TriagePage key={triage.useParams().id} id={triage.useParams().id} />;
  },
});

const costs = createRoute({ getParentRoute: () => shell, path: '/costs', component: CostsPage });

const platformCosts = createRoute({
  getParentRoute: () => shell,
  path: '/platform-costs',
  component: PlatformCostsPage,
});

const orphans = createRoute({ getParentRoute: () => shell, path: '/orphans', component: OrphansPage });
const nodes = createRoute({ getParentRoute: () => shell, path: '/nodes', component: NodesPage });
const node = createRoute({
  getParentRoute: () => shell,
  path: '/nodes/$id',
  component: function Node() {
    return <NodePage key={node.useParams().id} id={node.useParams().id} />;
  },
});
const access = createRoute({
  getParentRoute: () => shell,
  path: '/access',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'tab'),
  component: function Access() {
    return <AccessPage tab={access.useSearch().tab} />;
  },
});

const policy = createRoute({ getParentRoute: () => shell, path: '/policy', component: PolicyPage });
const sharing = createRoute({ getParentRoute: () => shell, path: '/control-planes', component: SharingPage });
const releases = createRoute({ getParentRoute: () => shell, path: '/releases', component: ReleasesPage });
const release = createRoute({
  getParentRoute: () => shell,
  path: '/releases/$id',
  component: function Release() {
    return <ReleasePage key={release.useParams().id} id={release.useParams().id} />;
  },
});
const onboarding = createRoute({
  getParentRoute: () => shell,
  path: '/onboarding/$slug',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'version'),
  component: function Onboarding() {
    const { slug } = onboarding.useParams();
    const { version } = onboarding.useSearch();
    return <OnboardingPage key={`${slug} ${version ?? ''}`} slug={slug} version={version} />;
  },
});
const gaps = createRoute({
  getParentRoute: () => shell,
  path: '/gaps',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'app', 'id'),
  component: function Gaps() {
    const { app: slug, id } = gaps.useSearch();
    return <GapsPage key={`${slug ?? ''} ${id ?? ''}`} app={slug} id={id} />;
  },
});
const publish = createRoute({ getParentRoute: () => shell, path: '/publish', component: PublishPage });
const artifacts = createRoute({
  getParentRoute: () => shell,
  path: '/artifacts',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'id'),
  component: function Artifacts() {
    return <ArtifactsPage id={artifacts.useSearch().id} />;
  },
});
const sources = createRoute({ getParentRoute: () => shell, path: '/sources', component: SourcesPage });
const webhooks = createRoute({ getParentRoute: () => shell, path: '/webhooks', component: WebhooksPage });
const audit = createRoute({
  getParentRoute: () => shell,
  path: '/audit',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'correlation'),
  component: function Audit() {
    const { correlation } = audit.useSearch();
    return <AuditPage key={correlation} correlation={correlation} />;
  },
});

/** The router of the console. */
export const router = createRouter({
  routeTree: root.addChildren([
    loginRoute,
    shell.addChildren([
      index,
      catalog,
      app,
      launch,
      allocations,
      workloads,
      workload,
      operations,
      operation,
      triage,
      orphans,
      costs,
      platformCosts,
      nodes,
      node,
      access,
      policy,
      sharing,
      webhooks,
      audit,
      releases,
      onboarding,
      gaps,
      release,
      publish,
      artifacts,
      sources,
    ]),
  ]),
  defaultPreload: false,
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
