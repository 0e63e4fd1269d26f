// @vitest-environment happy-dom
// The first drawing beside the frame that takes its place: the same parts and words in the same order.
import { MantineProvider } from '@mantine/core';
import {
  RouterProvider,
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
} from '@tanstack/react-router';
import { act } from 'react';
import { createRoot } from 'react-dom/client';
import { expect, it, vi } from 'vitest';
import { places } from '../lib/places';
import { LoadingPage } from './Fallbacks';
import { Shell } from './Shell';
import { firstDrawing } from '../ui/first';

vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
vi.stubGlobal('scrollTo', () => undefined);
vi.mock('../api/session', () => ({
  SessionGate: ({ children }: { children: unknown }) => children,
  useSession: () => ({ project: { id: 'p', name: 'P' }, projects: [], viewer: {}, can: () => false }),
}));
vi.mock('./NavDrawer', () => ({ NavDrawer: () => null }));
vi.mock('./ProjectSwitcher', () => ({ ProjectSwitcher: () => null }));
vi.mock('./ViewerMenu', () => ({ ViewerMenu: () => null }));

/** Returns the frame as the console draws it at a path, while the page's own code is loading. */
async function frame(path: string): Promise<HTMLElement> {
  window.history.replaceState(null, '', path);
  const root = createRootRoute();
  const shell = createRoute({ getParentRoute: () => root, id: 'shell', component: Shell });
  const pages = ['/workloads', '/volumes', '/releases', '/workloads/$id'].map((each) =>
    createRoute({ getParentRoute: () => shell, path: each, component: LoadingPage }),
  );
  const router = createRouter({
    routeTree: root.addChildren([shell.addChildren(pages)]),
    history: createMemoryHistory({ initialEntries: [path] }),
  });
  const box = document.createElement('div');
  const drawn = createRoot(box);
  await act(async () => {
    await router.load();
    drawn.render(
      <MantineProvider>
        <RouterProvider router={router} />
      </MantineProvider>,
    );
  });
  const copy = box.cloneNode(true) as HTMLElement;
  act(() => drawn.unmount());
  return copy;
}

/** Returns the parts of a drawing that people see: each with its text, its link and whether it is chosen. */
function parts(drawing: HTMLElement): string[] {
  const seen = [
    ...drawing.querySelectorAll('aside .brand, .nav h2, .nav a, .page h1, .page .lede, .waiting, .waiting i'),
  ];
  return seen.map((part) =>
    [
      part.tagName,
      part.textContent,
      part.getAttribute('href'),
      part.closest('nav') && part.getAttribute('data-status'),
      part.closest('nav') && part.getAttribute('aria-current'),
      part.closest('.page')?.className,
    ].join(' '),
  );
}

it.each(['/workloads', '/volumes', '/releases', '/workloads/one'])('draws at %s what the frame draws', async (path) => {
  const first = document.createElement('div');
  first.innerHTML = firstDrawing(path);
  expect(parts(first)).toEqual(parts(await frame(path)));
  expect(parts(first).length).toBeGreaterThan(12);
});

it('has a head for each place of the navigation and for the page that the root leads to', () => {
  for (const { path, title, lede } of places)
    expect(firstDrawing(path)).toContain(`<h1>${title}</h1><div class="lede">${lede}<`);
  expect(firstDrawing('/')).toBe(firstDrawing('/workloads'));
});

it('shows nothing of the address', () => {
  expect(firstDrawing('/<img src=x onerror=alert(1)>')).toBe(firstDrawing('/anything-else'));
});
