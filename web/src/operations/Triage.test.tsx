// @vitest-environment happy-dom
import { MantineProvider } from '@mantine/core';
import { act } from 'react';
import { createRoot } from 'react-dom/client';
import { expect, it, vi } from 'vitest';
import type { ReactNode } from 'react';
import { plain } from '../api/errors';
import { BundleView } from './TriageBundle';
import { labelOf, reasonOf } from './TriageNext';
import { TriageLink } from './TriageLink';
import { TriageView } from './TriagePage';

vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
Object.defineProperty(document, 'fonts', { value: new EventTarget() }); // which this environment lacks
vi.mock('../ui/Denied', () => ({
  DeniedButton: ({ permissionKey }: { permissionKey: string }) => <button data-denied={permissionKey} />,
}));
interface Linked {
  to: string;
  params?: { id: string };
  search?: Record<string, string>;
  children: ReactNode;
}
vi.mock('@tanstack/react-router', () => ({
  Link: ({ to, params, search, children }: Linked) => (
    <a href={to.replace('$id', params?.id ?? '') + String(new URLSearchParams(search))}>{children}</a>
  ),
}));

function drawn(what: ReactNode): string {
  const box = document.createElement('div');
  const root = createRoot(box);
  act(() => root.render(<MantineProvider>{what}</MantineProvider>));
  const html = box.innerHTML;
  act(() => root.unmount());
  return html;
}

it('leads from a problem to the report of its correlation id', () => {
  expect(drawn(<TriageLink problem={plain('CONFLICT', 'No.', 'cor-1')} />)).toContain('/triage/cor-1');
  expect(drawn(<TriageLink problem={plain('CONFLICT', 'No.', '')} />)).not.toContain('/triage');
  expect(drawn(<TriageLink problem={plain('UNAUTHENTICATED', 'No.', 'cor-1')} />)).not.toContain('/triage');
});

const row = { id: null, at: '2026-11-25T12:00:00Z', state: '', message: '', traceId: '' };

const report = (allowed: boolean) =>
  drawn(
    <TriageView
      report={{
        correlationId: 'cor-1',
        operationId: 'op_1',
        instanceId: 'ins_1',
        asked: 'INSTANCE_DECOMMISSION',
        requester: { kind: 'USER', id: 'usr_1', name: 'Ann' },
        reason: 'seen it',
        at: '2026-11-25T12:00:00Z',
        stands: 'BLOCKED',
        code: 'NODE_OFFLINE',
        message: 'node na does not answer',
        owner: 'node',
        branch: { ref: 'a/b/c', title: 'An instance', section: 'STOPPING', means: 'away', do: 'start the agent again' },
        next: {
          mutation: 'decommissionInstance',
          plan: 'planDecommissionInstance',
          argument: 'instanceId',
          value: 'ins_1',
          force: true,
          permissionKey: 'apps.instance.delete',
          allowed,
          variables: { input: { instanceId: 'ins_1', force: true, reason: 'triage: NODE_OFFLINE at op_1' } },
        },
        evidence: [
          { ...row, kind: 'STEP', what: 'residue', state: 'RUNNING', message: 'waits', link: '/operations/op_1' },
          { ...row, kind: 'AUDIT', what: 'decommissionInstance', link: '/audit?correlation=cor-1' },
          { ...row, kind: 'TRACE', what: 'abc', link: 'https://tools.example.com/abc' },
        ],
        allocationId: null,
        traceId: 'abc',
        costSoFar: { amount: '1.50', currency: 'EUR' },
        others: [{ operationId: 'op_0', kind: 'MEMBERS_ADD', state: 'FAILED', at: '2026-11-25T12:00:00Z' }],
        links: [{ name: 'dashboard', url: 'https://tools.example.com/board' }],
      }}
    />,
  );

it('shows the cause, the branch, the next action with its key, and the evidence with its links', () => {
  const html = report(false);
  for (const said of ['NODE_OFFLINE', 'start the agent again', 'a/b/c', 'decommissionInstance', 'by force']) {
    expect(html).toContain(said);
  }
  for (const said of ['you do not have it', 'residue', '/operations/op_1', '/workloads/ins_1', 'cor-1']) {
    expect(html).toContain(said);
  }
  for (const said of ['1.50 EUR', '/triage/op_0', '/auditcorrelation=cor-1', 'https://tools.example.com/abc']) {
    expect(html).toContain(said);
  }
  expect(html).toContain('https://tools.example.com/board');
  expect(html).toContain('data-denied="apps.instance.delete"');
});

it('has a button for the action where the person has the key', () => {
  const html = report(true);
  expect(html).toContain('Decommission by force…');
  expect(html).not.toContain('data-denied');
});

it('knows the words and the reason of an action, and has none for one that it does not know', () => {
  expect(labelOf({ mutation: 'drainMember', force: false })).toBe('Drain the member');
  expect(labelOf({ mutation: 'somethingNew', force: true })).toBeUndefined();
  expect(reasonOf({ variables: { input: { reason: 'r' } } })).toBe('r');
  expect(reasonOf({ variables: {} })).toBe('');
});

it('shows what is in a support bundle, and what is not and why', () => {
  const html = drawn(
    <BundleView
      bundle={{
        name: 'b.jsonl',
        madeAt: '2026-11-25T12:00:00Z',
        sections: [{ name: 'step', fields: ['name', 'state'], rows: 3 }],
        leftOut: [{ what: 'reasons, names and labels', why: 'people write them', count: 0 }],
      }}
    />,
  );
  for (const said of ['step', 'name, state', 'reasons, names and labels', 'people write them']) {
    expect(html).toContain(said);
  }
});
