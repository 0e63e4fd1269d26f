// A kubeconfig for a workload whose app lets people in by certificates. It holds no secret: its user is appctl, which
// requests a certificate that lasts minutes and forwards the connection.

/** The prefix of the names of the actions by which an app does so. */
const prefix = 'kubeconfig.';

/** The levels of certificates, the most powerful first. */
const levels = ['admin', 'member', 'viewer'];

/** The action that returns how the API is reached. */
export const clusterAction = `${prefix}cluster`;

/** How an API is reached, as the app reports it. */
export interface Way {
  readonly endpoint: string;
  readonly authority: string;
  readonly serverName: string;
  readonly credentialVersion: string;
}

interface Action {
  readonly name: string;
  readonly permissionKey: string;
}

/** Whether the app lets people in by certificates at all. */
export function takesCertificates(actions: readonly Action[]): boolean {
  return actions.some((action) => action.name === clusterAction);
}

/** The highest level that the caller may use; undefined without any. */
export function levelFor(actions: readonly Action[], can: (key: string) => boolean): string | undefined {
  return levels.find((level) => {
    const action = actions.find(({ name }) => name === prefix + level);
    return action !== undefined && can(action.permissionKey);
  });
}

/** A port for the workload, the same each time: below the ports that systems assign, above the well-known ones. */
export function portOf(id: string): number {
  let sum = 0;
  for (const letter of id) sum = (sum * 31 + letter.charCodeAt(0)) % 12_000;
  return 20_000 + sum;
}

/** The text of the configuration. */
export function kubeconfigOf(id: string, name: string, way: Way, level: string, server: string): string {
  const port = portOf(id);
  const args = [
    'kube-credential',
    id,
    `--as=${level}`,
    `--port=${port}`,
    `--endpoint=${way.endpoint}`,
    `--version-of=${way.credentialVersion}`,
    `--server=${server}`,
  ];
  const cluster = {
    server: `https://127.0.0.1:${port}`,
    'tls-server-name': way.serverName,
    'certificate-authority-data': btoa(way.authority),
  };
  const exec = { apiVersion: way.credentialVersion, command: 'appctl', args, interactiveMode: 'Never' };
  const document = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster }],
    users: [{ name, user: { exec } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}
