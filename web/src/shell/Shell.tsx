// The frame around every page: navigation, project, viewer, and the status of the live connection.
import { ActionIcon } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Link, Outlet, useLocation } from '@tanstack/react-router';
import { Fragment, Suspense, lazy, useEffect } from 'react';
import { SessionGate, useSession } from '../api/session';
import { placesFor } from '../lib/places';
import { Icon } from '../ui/Icons';
import { firstDrawing } from '../ui/first';
import { ProblemPage } from '../ui/Problem';
import { Empty } from '../ui/parts';
import { ConnectionBanner } from './ConnectionBanner';
import { SchemeToggle } from './SchemeToggle';

// What opens on a click is loaded after the frame, not before it.
const NavDrawer = lazy(() => import('./NavDrawer').then((module) => ({ default: module.NavDrawer })));
const ProjectSwitcher = lazy(() => import('./ProjectSwitcher').then((module) => ({ default: module.ProjectSwitcher })));
const ViewerMenu = lazy(() => import('./ViewerMenu').then((module) => ({ default: module.ViewerMenu })));

/** The layout of every page but the login. */
export function Shell() {
  return (
    <SessionGate
      fallback={(read) =>
        read.problem !== undefined && !read.loading ? (
          <main className="main">
            <div className="page">
              <ProblemPage problem={read.problem} onRetry={read.refresh} />
            </div>
          </main>
        ) : (
          <First />
        )
      }
    >
      <Frame />
    </SessionGate>
  );
}

/** The first drawing until the session is known: the one that is still in the document, or a new one. */
function First() {
  const { pathname } = useLocation();
  if (document.getElementById('first') !== null) return null;
  return <div style={{ display: 'contents' }} dangerouslySetInnerHTML={{ __html: firstDrawing(pathname) }} />;
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
        {placesFor(can).map(({ group, places }) => (
          <Fragment key={group}>
            <h2>{group}</h2>
            {places.map(({ path, icon, title }) => (
              <Link key={path} to={path} activeOptions={{ includeSearch: false }}>
                <Icon name={icon} />
                {title}
              </Link>
            ))}
          </Fragment>
        ))}
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

/** Takes the space of a menu's button until the menu is loaded. */
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
