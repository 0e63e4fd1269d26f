import { expect, it } from 'vitest';
import { kubeconfigOf, levelFor, portOf, takesCertificates } from './kubeconfig';

const actions = [
  { name: 'kubeconfig.cluster', permissionKey: 'apps.queue.read' },
  { name: 'kubeconfig.viewer', permissionKey: 'apps.queue.read' },
  { name: 'kubeconfig.admin', permissionKey: 'apps.member.exec' },
];

it('takes the most that the caller may', () => {
  expect(levelFor(actions, () => true)).toBe('admin');
  expect(levelFor(actions, (key) => key === 'apps.queue.read')).toBe('viewer');
  expect(levelFor(actions, () => false)).toBeUndefined();
  expect([takesCertificates(actions), takesCertificates(actions.slice(1))]).toEqual([true, false]);
});

it('has a port of its own for each workload, and holds no secret', () => {
  expect(portOf('ins_1')).toBe(portOf('ins_1'));
  expect(portOf('ins_1')).not.toBe(portOf('ins_2'));
  const way = { endpoint: 'api', authority: 'AUTHORITY', serverName: 'inside', credentialVersion: 'auth/v9' };
  const made = JSON.parse(kubeconfigOf('ins_1', 'research', way, 'viewer', 'https://console.example')) as {
    clusters: { cluster: Record<string, string> }[];
    users: { user: Record<string, { command: string; args: string[] }> }[];
  };
  expect(made.clusters[0]?.cluster['certificate-authority-data']).toBe('QVVUSE9SSVRZ');
  expect(made.clusters[0]?.cluster['server']).toBe(`https://127.0.0.1:${portOf('ins_1')}`);
  expect(Object.keys(made.users[0]?.user ?? {})).toEqual(['exec']);
  expect(made.users[0]?.user['exec']?.args).toContain('--server=https://console.example');
});
