// @vitest-environment happy-dom
import { MantineProvider } from '@mantine/core';
import { act } from 'react';
import { createRoot } from 'react-dom/client';
import { expect, it, vi } from 'vitest';
import type { ReactNode } from 'react';
import { plain } from '../api/errors';
import { TriageLink, TriageView } from './TriagePage';

vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
Object.defineProperty(document, 'fonts', { value: new EventTarget() }); // which this environment lacks
vi.mock('@tanstack/react-router', () => ({
  Link: ({ to, params, children }: { to: string; params: { id: string }; children: ReactNode }) => (
    <a href={to.replace('$id', params.id)}>{children}</a>
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

it('shows the cause, the branch, the next action with its key, and the evidence', () => {
  const html = drawn(
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
          force: true,
          permissionKey: 'apps.instance.delete',
          allowed: false,
        },
        evidence: [
          { kind: 'STEP', id: null, at: '2026-11-25T12:00:00Z', what: 'residue', state: 'RUNNING', message: 'waits' },
        ],
      }}
    />,
  );
  for (const said of ['NODE_OFFLINE', 'start the agent again', 'a/b/c', 'decommissionInstance', 'by force']) {
    expect(html).toContain(said);
  }
  for (const said of ['you do not have it', 'residue', '/operations/op_1', '/workloads/ins_1', 'cor-1']) {
    expect(html).toContain(said);
  }
});
