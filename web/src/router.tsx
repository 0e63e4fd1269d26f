// The console's pages by path.
import { Outlet, createRootRoute, createRoute, createRouter, redirect } from '@tanstack/react-router';
import { refusalOf } from './login/codes';
import { Shell } from './shell/Shell';
import { page } from './shell/chunk';
import { BrokenPage, FailedPage, LoadingPage, MissingPage } from './shell/Fallbacks';

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
  pendingComponent: () => null, // the first drawing or the earlier page is still shown
  errorComponent: BrokenPage,
}).lazy(() =>
  page(
    import('./login/LoginPage'),
    ({ LoginPage }) =>
      function Login() {
        const { reason, next, error, message, correlation_id: correlationId } = loginRoute.useSearch();
        return <LoginPage reason={reason} next={next} refused={refusalOf(error, message, correlationId)} />;
      },
  ),
);

const shell = createRoute({ getParentRoute: () => root, id: 'shell', component: Shell, errorComponent: BrokenPage });

const index = createRoute({
  getParentRoute: () => shell,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/workloads' }) as unknown as Error;
  },
});

const catalog = createRoute({ getParentRoute: () => shell, path: '/catalog' }).lazy(() =>
  page(import('./catalog/CatalogPage'), (module) => module.CatalogPage),
);

const app = createRoute({ getParentRoute: () => shell, path: '/catalog/$slug' }).lazy(() =>
  page(
    import('./catalog/AppPage'),
    ({ AppPage }) =>
      function App() {
        return <AppPage key={app.useParams().slug} slug={app.useParams().slug} />;
      },
  ),
);

const launch = createRoute({
  getParentRoute: () => shell,
  path: '/launch/$slug',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'version'),
}).lazy(() =>
  page(
    import('./launch/LaunchPage'),
    ({ LaunchPage }) =>
      function Launch() {
        const { slug } = launch.useParams();
        const { version } = launch.useSearch();
        return <LaunchPage key={`${slug} ${version ?? ''}`} slug={slug} version={version} />;
      },
  ),
);

const allocations = createRoute({ getParentRoute: () => shell, path: '/allocations' }).lazy(() =>
  page(import('./allocations/AllocationsPage'), (module) => module.AllocationsPage),
);

const volumes = createRoute({ getParentRoute: () => shell, path: '/volumes' }).lazy(() =>
  page(import('./volumes/VolumesPage'), (module) => module.VolumesPage),
);

const workloads = createRoute({
  getParentRoute: () => shell,
  path: '/workloads',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'show', 'q'),
}).lazy(() =>
  page(
    import('./workloads/WorkloadsPage'),
    ({ WorkloadsPage }) =>
      function Workloads() {
        const { show, q } = workloads.useSearch();
        return <WorkloadsPage show={show} search={q} />;
      },
  ),
);

const workload = createRoute({
  getParentRoute: () => shell,
  path: '/workloads/$id',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'tab', 'of'),
}).lazy(() =>
  page(
    import('./workloads/WorkloadPage'),
    ({ WorkloadPage }) =>
      function Workload() {
        const { id } = workload.useParams();
        const { tab, of } = workload.useSearch();
        return <WorkloadPage key={id} id={id} tab={tab} of={of} />;
      },
  ),
);

const operations = createRoute({ getParentRoute: () => shell, path: '/operations' }).lazy(() =>
  page(import('./operations/OperationsPage'), (module) => module.OperationsPage),
);

const operation = createRoute({ getParentRoute: () => shell, path: '/operations/$id' }).lazy(() =>
  page(
    import('./operations/OperationPage'),
    ({ OperationPage }) =>
      function Operation() {
        return <OperationPage key={operation.useParams().id} id={operation.useParams().id} />;
      },
  ),
);

const triage = createRoute({ getParentRoute: () => shell, path: '/triage/$id' }).lazy(() =>
  page(
    import('./operations/TriagePage'),
    ({ TriagePage }) =>
      function Triage() {
        return <TriagePage key={triage.useParams().id} id={triage.useParams().id} />;
      },
  ),
);

const costs = createRoute({ getParentRoute: () => shell, path: '/costs' }).lazy(() =>
  page(import('./costs/CostsPage'), (module) => module.CostsPage),
);

const platformCosts = createRoute({ getParentRoute: () => shell, path: '/platform-costs' }).lazy(() =>
  page(import('./costs/PlatformCostsPage'), (module) => module.PlatformCostsPage),
);

const orphans = createRoute({ getParentRoute: () => shell, path: '/orphans' }).lazy(() =>
  page(import('./orphans/OrphansPage'), (module) => module.OrphansPage),
);
const nodes = createRoute({ getParentRoute: () => shell, path: '/nodes' }).lazy(() =>
  page(import('./nodes/NodesPage'), (module) => module.NodesPage),
);
const node = createRoute({ getParentRoute: () => shell, path: '/nodes/$id' }).lazy(() =>
  page(
    import('./nodes/NodePage'),
    ({ NodePage }) =>
      function Node() {
        return <NodePage key={node.useParams().id} id={node.useParams().id} />;
      },
  ),
);
const access = createRoute({
  getParentRoute: () => shell,
  path: '/access',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'tab'),
}).lazy(() =>
  page(
    import('./access/AccessPage'),
    ({ AccessPage }) =>
      function Access() {
        return <AccessPage tab={access.useSearch().tab} />;
      },
  ),
);

const policy = createRoute({ getParentRoute: () => shell, path: '/policy' }).lazy(() =>
  page(import('./policy/PolicyPage'), (module) => module.PolicyPage),
);
const sharing = createRoute({ getParentRoute: () => shell, path: '/control-planes' }).lazy(() =>
  page(import('./sharing/SharingPage'), (module) => module.SharingPage),
);
const releases = createRoute({ getParentRoute: () => shell, path: '/releases' }).lazy(() =>
  page(import('./releases/ReleasesPage'), (module) => module.ReleasesPage),
);
const release = createRoute({ getParentRoute: () => shell, path: '/releases/$id' }).lazy(() =>
  page(
    import('./releases/ReleasePage'),
    ({ ReleasePage }) =>
      function Release() {
        return <ReleasePage key={release.useParams().id} id={release.useParams().id} />;
      },
  ),
);
const onboarding = createRoute({
  getParentRoute: () => shell,
  path: '/onboarding/$slug',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'version'),
}).lazy(() =>
  page(
    import('./onboarding/OnboardingPage'),
    ({ OnboardingPage }) =>
      function Onboarding() {
        const { slug } = onboarding.useParams();
        const { version } = onboarding.useSearch();
        return <OnboardingPage key={`${slug} ${version ?? ''}`} slug={slug} version={version} />;
      },
  ),
);
const gaps = createRoute({
  getParentRoute: () => shell,
  path: '/gaps',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'app', 'id'),
}).lazy(() =>
  page(
    import('./onboarding/GapsPage'),
    ({ GapsPage }) =>
      function Gaps() {
        const { app: slug, id } = gaps.useSearch();
        return <GapsPage key={`${slug ?? ''} ${id ?? ''}`} app={slug} id={id} />;
      },
  ),
);
const publish = createRoute({ getParentRoute: () => shell, path: '/publish' }).lazy(() =>
  page(import('./releases/PublishPage'), (module) => module.PublishPage),
);
const artifacts = createRoute({
  getParentRoute: () => shell,
  path: '/artifacts',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'id'),
}).lazy(() =>
  page(
    import('./artifacts/ArtifactsPage'),
    ({ ArtifactsPage }) =>
      function Artifacts() {
        return <ArtifactsPage id={artifacts.useSearch().id} />;
      },
  ),
);
const sources = createRoute({ getParentRoute: () => shell, path: '/sources' }).lazy(() =>
  page(import('./sources/SourcesPage'), (module) => module.SourcesPage),
);
const webhooks = createRoute({ getParentRoute: () => shell, path: '/webhooks' }).lazy(() =>
  page(import('./webhooks/WebhooksPage'), (module) => module.WebhooksPage),
);
const audit = createRoute({
  getParentRoute: () => shell,
  path: '/audit',
  validateSearch: (search: Record<string, unknown>) => texts(search, 'correlation'),
}).lazy(() =>
  page(
    import('./audit/AuditPage'),
    ({ AuditPage }) =>
      function Audit() {
        const { correlation } = audit.useSearch();
        return <AuditPage key={correlation} correlation={correlation} />;
      },
  ),
);

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
      volumes,
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
  // A page's chunk is loaded while the pointer or the focus is on a link to it.
  defaultPreload: 'intent',
  defaultPendingComponent: LoadingPage,
  defaultPendingMs: 0, // the frame reads the session while the first page's chunk is loaded
  defaultPendingMinMs: 0,
  defaultErrorComponent: FailedPage,
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
