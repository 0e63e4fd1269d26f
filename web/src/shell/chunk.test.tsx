// @vitest-environment happy-dom
import { MantineProvider } from '@mantine/core';
import { act } from 'react';
import { createRoot } from 'react-dom/client';
import { expect, it, vi } from 'vitest';
import { FailedPage } from './Fallbacks';
import { NotLoaded, page } from './chunk';

vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);

/** Returns the text of what is shown for an error. */
function shown(error: unknown): string {
  const box = document.createElement('div');
  const root = createRoot(box);
  act(() =>
    root.render(
      <MantineProvider>
        <FailedPage error={error} />
      </MantineProvider>,
    ),
  );
  const text = box.textContent;
  act(() => root.unmount());
  return text;
}

it('gives a route what its chunk has', async () => {
  const Page = () => <p>here</p>;
  const route = await page(Promise.resolve({ Page }), (module) => module.Page);
  expect(route.options.component).toBe(Page);
});

it('says of a chunk that is gone that a reload may help, and of a bug that the page failed', async () => {
  const gone = await page(Promise.reject<{ Page: () => null }>(new TypeError('no such file')), (m) => m.Page).catch(
    (error: unknown) => error,
  );
  expect(gone).toBeInstanceOf(NotLoaded);
  expect(shown(gone)).toMatch(/could not be loaded.*may have a new version.*no such file.*Load the page again/);
  expect(shown(new Error('a bug'))).toMatch(/This page of the console failed.*a bug.*Load the page again/);
});
