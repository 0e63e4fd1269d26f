// The frame around every page: navigation, project, viewer, and the status of the live connection.
import { ActionIcon } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Link, Outlet, useLocation } from '@tanstack/react-router';
import { Suspense, lazy, useEffect } from 'react';
import { SessionGate, useSession } from '../api/session';
import { Icon } from '../ui/Icons';
import type { IconName } from '../ui/Icons';
import { ProblemPage } from '../ui/Problem';
import { Empty, Loading } from '../ui/parts';
import { ConnectionBanner } from './ConnectionBanner';
import { SchemeToggle } from './SchemeToggle';

// What opens on a click comes behind the frame, not before it.
const NavDrawer = lazy(() => import('./NavDrawer').then((module) => ({ default: module.NavDrawer })));
const ProjectSwitcher = lazy(() => import('./ProjectSwitcher').then((module) => ({ default: module.ProjectSwitcher })));
const ViewerMenu = lazy(() => import('./ViewerMenu').then((module) => ({ default: module.ViewerMenu })));

/** The layout of every page but the login. */
export function Shell() {
  return (
    <SessionGate
      fallback={(read) => (
        <main className="main">
          <div className="page">
            {read.problem !== undefined && !read.loading ? (
              <ProblemPage problem={read.problem} onRetry={read.refresh} />
            ) : (
              <div className="card">
                <Loading lines={6} />
              </div>
            )}
          </div>
        </main>
      )}
    >
      <Frame />
    </SessionGate>
  );
}

function Frame() {
  const [open, drawer] = useDisclosure(false);
  const { pathname } = useLocation();
  const { close } = drawer;
  useEffect(() => close(), [pathname, close]);
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="top">
        <ActionIcon
          variant="subtle"
          color="gray"
          size="lg"
          aria-label="Open navigation"
          aria-expanded={open}
          onClick={drawer.open}
        >
          <Icon name="menu" size={20} />
        </ActionIcon>
        <Link to="/workloads" className="brand" style={{ padding: 0 }}>
          <img src="/icon.svg" alt="" />
          GPUaaS
        </Link>
        <span className="grow" />
        <SchemeToggle />
      </header>
      <aside className="side fixed">
        <SideContent />
      </aside>
      <Suspense fallback={null}>
        <NavDrawer opened={open} onClose={drawer.close}>
          <SideContent />
        </NavDrawer>
      </Suspense>
      <main className="main" id="content" tabIndex={-1} style={{ outline: 'none' }}>
        <Page />
      </main>
      <ConnectionBanner />
    </div>
  );
}

/** The page of the route, or a notice for viewers without access to any project. */
function Page() {
  const { project } = useSession();
  if (project === undefined) {
    return (
      <div className="page">
        <div className="card">
          <Empty icon="allocations" title="No project yet">
            You are logged in, but you have no access to any project. Ask an administrator of your tenant for a role.
          </Empty>
        </div>
      </div>
    );
  }
  return <Outlet />;
}

function SideContent() {
  const { can } = useSession();
  return (
    <>
      <Link to="/workloads" className="brand">
        <img src="/icon.svg" alt="" />
        <span>
          GPUaaS<small>App Platform</small>
        </span>
      </Link>
      <Suspense fallback={<SwitcherPlace />}>
        <ProjectSwitcher />
      </Suspense>
      <nav className="nav" aria-label="Main">
        <h2>Project</h2>
        <NavLink to="/workloads" icon="workloads" text="Workloads" />
        <NavLink to="/catalog" icon="catalog" text="Catalog" />
        <NavLink to="/allocations" icon="allocations" text="Allocations" />
        <NavLink to="/volumes" icon="volumes" text="Volumes" />
        <NavLink to="/operations" icon="operations" text="Operations" />
        <NavLink to="/orphans" icon="orphans" text="Orphans" />
        <NavLink to="/control-planes" icon="nodes" text="Sharing" />
        {can('billing.read') && <NavLink to="/costs" icon="cost" text="Costs" />}
        {can('webhook.read') && <NavLink to="/webhooks" icon="out" text="Webhooks" />}
        {can('manifest.read') && (
          <>
            <h2>Publishing</h2>
            <NavLink to="/releases" icon="launch" text="Releases" />
          </>
        )}
        {can('gap.read') && <NavLink to="/gaps" icon="warn" text="Gaps" />}
        {can('artifact.read') && <NavLink to="/artifacts" icon="allocations" text="Artifacts" />}
        {can('source.read') && <NavLink to="/sources" icon="out" text="Sources" />}
        <h2>Control</h2>
        <NavLink to="/access" icon="key" text="Access" />
        {can('policy.read') && <NavLink to="/policy" icon="policy" text="Policy" />}
        {can('audit.read') && <NavLink to="/audit" icon="audit" text="Audit" />}
        {can('node.read') && (
          <>
            <h2>Platform</h2>
            <NavLink to="/nodes" icon="nodes" text="Nodes" />
          </>
        )}
        {can('node.read') && can('billing.read') && <NavLink to="/platform-costs" icon="cost" text="Platform costs" />}
      </nav>
      <div className="side-foot">
        <div className="row" style={{ flexWrap: 'nowrap' }}>
          <Suspense fallback={<SwitcherPlace />}>
            <ViewerMenu />
          </Suspense>
          <SchemeToggle />
        </div>
      </div>
    </>
  );
}

/** Takes the room of a menu's button until the menu is loaded. */
function SwitcherPlace() {
  return (
    <div className="switcher" aria-hidden="true">
      <span>
        <b>&nbsp;</b>
        <small>&nbsp;</small>
      </span>
    </div>
  );
}

function NavLink({
  to,
  icon,
  text,
}: {
  to:
    | '/workloads'
    | '/catalog'
    | '/allocations'
    | '/volumes'
    | '/operations'
    | '/orphans'
    | '/costs'
    | '/platform-costs'
    | '/audit'
    | '/nodes'
    | '/access'
    | '/policy'
    | '/control-planes'
    | '/webhooks'
    | '/releases'
    | '/gaps'
    | '/artifacts'
    | '/sources';
  icon: IconName;
  text: string;
}) {
  return (
    <Link to={to} activeOptions={{ includeSearch: false }}>
      <Icon name={icon} />
      {text}
    </Link>
  );
}
