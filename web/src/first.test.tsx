// @vitest-environment happy-dom
// The first drawing in the document: until the page is drawn, and when its code does not load.
import { beforeEach, expect, it, vi } from 'vitest';

const first = () => document.getElementById('first');

beforeEach(() => {
  document.body.innerHTML = '<div id="root"></div>';
  vi.resetModules();
});

/** Draws the first drawing at a path. */
async function drawAt(path: string) {
  window.history.replaceState(null, '', path);
  await import('./first');
  expect(first()?.nextElementSibling?.id).toBe('root');
}

/** Has an element of the document fail to load. */
function failed(name: 'script' | 'img') {
  const element = document.body.appendChild(document.createElement(name));
  element.dispatchEvent(new Event('error'));
}

it.each(['/workloads', '/login', '/Login/'])('stays at %s until the page is there', async (path) => {
  await drawAt(path);
  expect(first()?.querySelector('.login') !== null).toBe(path !== '/workloads');
  const root = document.querySelector('#root') as HTMLElement;
  root.innerHTML = '<div class="page"></div>';
  await Promise.resolve();
  expect(first()).not.toBeNull();
  root.innerHTML = '<main></main>';
  await vi.waitFor(() => expect(first()).toBeNull());
});

it.each(['/workloads', '/login'])('says at %s that the code did not come', async (path) => {
  await drawAt(path);
  failed('img');
  expect(first()?.querySelector('[role=alert]')).toBeNull();
  failed('script');
  expect(first()?.querySelector('[role=alert]')?.textContent).toContain('The console could not be loaded');
  expect(first()?.querySelector('[role=status]')).toBeNull();
});

it('says that the code stopped before it had drawn', async () => {
  await drawAt('/volumes');
  window.dispatchEvent(new ErrorEvent('error', { message: 'no such thing' }));
  expect(first()?.querySelector('[role=alert] a')?.getAttribute('href')).toBe('');
});
