// @vitest-environment happy-dom
import { MantineProvider } from '@mantine/core';
import { act } from 'react';
import { createRoot } from 'react-dom/client';
import type { Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { plain } from '../api/errors';
import type { Answer } from '../api/hooks';
import type { InvokeActionMutation, OpenEndpointMutation } from '../generated/graphql';
import { EndpointRow, KubeconfigRow, ShellRow } from './ConnectCard';
import { save } from '../lib/save';

vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
Object.defineProperty(document, 'fonts', { value: new EventTarget() }); // which this environment lacks
vi.mock('../lib/save', () => ({ save: vi.fn() }));
vi.mock('../ui/Denied', () => ({ useAnswer: (key: string) => `You need the permission ${key}. Ask Dana.` }));

const url = 'http://web--01abc.apps.localhost:8080/.platform/open?ticket=once';
const web = {
  name: 'web',
  title: 'Notebook',
  componentKey: 'replica',
  protocol: 'http',
  permissionKey: 'apps.queue.submit',
  address: 'http://web--01abc.apps.localhost:8080',
  serving: 2,
};
const tcp = { ...web, name: 'db', title: 'Database', protocol: 'tcp', address: '' };

/** A tab as the browser returns it; it records the address that it is led to. */
function fakeTab() {
  return { opener: window, document: { title: '' }, location: { replace: vi.fn() }, close: vi.fn() };
}

let root: Root;
let box: HTMLElement;
let asked: string[];
let answer: (given: Answer<OpenEndpointMutation>) => void;

beforeEach(() => {
  box = document.createElement('div');
  document.body.append(box);
  root = createRoot(box);
  asked = [];
});
afterEach(() => {
  act(() => root.unmount());
  box.remove();
  vi.restoreAllMocks();
});

function draw(
  endpoint: typeof web,
  { allowed = true, status = 'RUNNING' }: { allowed?: boolean; status?: 'RUNNING' | 'STARTING' } = {},
) {
  const ask = (name: string) => {
    asked.push(name);
    return new Promise<Answer<OpenEndpointMutation>>((resolve) => {
      answer = resolve;
    });
  };
  act(() =>
    root.render(
      <MantineProvider>
        <EndpointRow endpoint={endpoint} workload={{ id: 'ins_01abc', status }} allowed={allowed} ask={ask} />
      </MantineProvider>,
    ),
  );
}

const button = () => [...box.querySelectorAll('button')].find((each) => each.textContent.startsWith('Open'));

it('opens the tab in the click, cut off from the console, and leads it to the address once that is known', async () => {
  const tab = fakeTab();
  const open = vi.spyOn(window, 'open').mockReturnValue(tab as unknown as Window);
  draw(web);
  act(() => button()?.click());
  expect(open).toHaveBeenCalledWith('about:blank', '_blank');
  expect([tab.opener, tab.location.replace.mock.calls, asked]).toEqual([null, [], ['web']]);
  await act(async () => answer({ data: { openEndpoint: { url } } }));
  expect(tab.location.replace).toHaveBeenCalledWith(url);
  expect(box.textContent).not.toContain('blocked');
});

it('shows the address as a link where the browser blocks new tabs', async () => {
  vi.spyOn(window, 'open').mockReturnValue(null);
  draw(web);
  act(() => button()?.click());
  await act(async () => answer({ data: { openEndpoint: { url } } }));
  const link = box.querySelector('a');
  expect([link?.href, link?.target, link?.rel]).toEqual([url, '_blank', 'noopener noreferrer']);
});

it('closes the tab and says why when the platform refuses', async () => {
  const tab = fakeTab();
  vi.spyOn(window, 'open').mockReturnValue(tab as unknown as Window);
  draw(web);
  act(() => button()?.click());
  await act(async () => answer({ problem: plain('NODE_UNREACHABLE', 'the agent is not connected', 'c-1') }));
  expect(tab.close).toHaveBeenCalledOnce();
  expect(tab.location.replace).not.toHaveBeenCalled();
  expect(box.textContent).toContain('the agent is not connected');
});

it('says whom to ask, and opens nothing, without the permission', () => {
  draw(web, { allowed: false });
  expect(button()?.disabled).toBe(true);
  expect(box.textContent).toContain('You need the permission apps.queue.submit. Ask Dana.');
  expect(box.textContent).not.toContain('appctl');
});

it('has no button for what no browser opens, but the command', () => {
  draw(tcp);
  expect(button()).toBeUndefined();
  expect(box.textContent).toContain('appctl forward ins_01abc db');
});

it('waits for the first member that serves it, and opens an unhealthy one all the same', () => {
  draw({ ...web, serving: 0 }, { status: 'STARTING' });
  expect([button()?.disabled, box.textContent.includes('nothing serves it yet')]).toEqual([true, true]);
  draw({ ...web, serving: 0 });
  expect([button()?.disabled, box.textContent.includes('no healthy replica serves it now')]).toEqual([false, true]);
});

it('shows the lines that log in to a member', () => {
  act(() =>
    root.render(
      <MantineProvider>
        <ShellRow instanceId="ins_1" />
      </MantineProvider>,
    ),
  );
  expect(box.textContent).toContain('appctl ssh ins_1');
  expect(box.textContent).toContain('appctl ssh-config ins_1');
});

const actions = [
  { name: 'kubeconfig.cluster', displayName: '', permissionKey: 'apps.queue.read', risk: 'READ' as const },
  { name: 'kubeconfig.viewer', displayName: '', permissionKey: 'apps.queue.read', risk: 'WRITE' as const },
].map((action) => ({ ...action, inputSchema: {}, outputSchema: {} }));

const download = () => [...box.querySelectorAll('button')].find((one) => one.textContent === 'Kubeconfig');

function drawKubeconfig(level: string | undefined, given: Answer<InvokeActionMutation>) {
  act(() =>
    root.render(
      <MantineProvider>
        <KubeconfigRow
          workload={{ id: 'ins_1', name: 'research', actions }}
          level={level}
          ask={() => Promise.resolve(given)}
        />
      </MantineProvider>,
    ),
  );
}

it('saves a kubeconfig that holds no secret', async () => {
  const output = { endpoint: 'api', authority: 'A', serverName: 'inside', credentialVersion: 'auth/v9' };
  drawKubeconfig('viewer', { data: { invokeAction: { action: 'kubeconfig.cluster', output, correlationId: 'c-1' } } });
  await act(async () => download()?.click());
  expect(vi.mocked(save).mock.calls[0]?.[0]).toBe('research.kubeconfig');
  expect(vi.mocked(save).mock.calls[0]?.[1]).toContain('--as=viewer');
  drawKubeconfig(undefined, { problem: plain('FORBIDDEN', 'no', 'c-2') });
  expect(download()?.disabled).toBe(true);
  expect(box.textContent).toContain('You need the permission apps.queue.read. Ask Dana.');
});
