// How people reach the running app: each endpoint with a button that opens it, or the line that forwards it.
import { Button } from '@mantine/core';
import { useState } from 'react';
import { tell } from '../api/hooks';
import type { Answer } from '../api/hooks';
import type { Problem } from '../api/errors';
import { useSession } from '../api/session';
import { InvokeActionDocument, OpenEndpointDocument } from '../generated/graphql';
import type { InvokeActionMutation, OpenEndpointMutation } from '../generated/graphql';
import { plural } from '../lib/format';
import { newKey } from '../lib/idempotency';
import type { Workload } from '../lifecycle/workload';
import { useAnswer } from '../ui/Denied';
import { Icon } from '../ui/Icons';
import { Notice, ProblemNotice } from '../ui/Problem';
import { Card, Copy } from '../ui/parts';
import { isOver } from './WorkloadsPage';
import { clusterAction, kubeconfigOf, levelFor, takesCertificates } from './kubeconfig';
import type { Way } from './kubeconfig';
import { save } from '../lib/save';
import { openTab } from './tab';

type Endpoint = Workload['endpoints'][number];

/** Requests the address of an endpoint, which works once and for seconds. */
type Asked = (endpoint: string) => Promise<Answer<OpenEndpointMutation>>;

/** The card; empty where nothing can be reached, and once the workload has ended. */
export function ConnectCard({ workload }: { workload: Workload }) {
  const { can } = useSession();
  const shell = can(`${workload.permissionFamily}.member.exec`);
  if (workload.releasedAt !== null || isOver(workload.status)) return null;
  if (workload.endpoints.length === 0 && !shell) return null;
  return (
    <Card title="Connect" label="Connect" pad={false} className="connect-card">
      <ul className="endpoints">
        {workload.endpoints.map((endpoint) => (
          <EndpointRow
            key={endpoint.name}
            endpoint={endpoint}
            workload={workload}
            allowed={can(endpoint.permissionKey)}
            ask={(name) => tell(OpenEndpointDocument, { input: { instanceId: workload.id, endpoint: name } })}
          />
        ))}
        {takesCertificates(workload.actions) && (
          <KubeconfigRow
            workload={workload}
            level={levelFor(workload.actions, can)}
            ask={() =>
              tell(InvokeActionDocument, {
                input: {
                  instanceId: workload.id,
                  projectId: null,
                  action: clusterAction,
                  input: {},
                  reason: null,
                  idempotencyKey: newKey(),
                },
              })
            }
          />
        )}
        {shell && <ShellRow instanceId={workload.id} />}
      </ul>
    </Card>
  );
}

/** How a person connects a client of their own: by a file that holds no secret, from here or from appctl. */
export function KubeconfigRow({
  workload,
  level,
  ask,
}: {
  workload: Pick<Workload, 'id' | 'name' | 'actions'>;
  level: string | undefined;
  ask: () => Promise<Answer<InvokeActionMutation>>;
}) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const least = workload.actions.find(({ name }) => name === clusterAction)?.permissionKey ?? '';
  const fetch = async () => {
    if (level === undefined) return;
    setBusy(true);
    const answer = await ask();
    setBusy(false);
    setProblem(answer.problem);
    if (answer.data === undefined) return;
    const way = answer.data.invokeAction.output as Way;
    save(`${workload.name}.kubeconfig`, kubeconfigOf(workload.id, workload.name, way, level, window.location.origin));
  };
  return (
    <li data-endpoint="kubeconfig">
      <Icon name="terminal" size={18} />
      <div className="grow stack-s">
        <div>
          <span className="strong">A client of your own</span> <span className="tag">kubeconfig</span>
        </div>
        {level === undefined ? (
          <Denied permissionKey={least} objectId={workload.id} />
        ) : (
          <div className="row small ways">
            <Copy value={`appctl kubeconfig ${workload.id}`} what="the command that prints a kubeconfig" />
            <span className="faint">as {level}; it needs appctl, logged in, on your machine</span>
          </div>
        )}
        {problem !== undefined && <ProblemNotice problem={problem} />}
      </div>
      <Button loading={busy} disabled={level === undefined} onClick={() => void fetch()}>
        Kubeconfig
      </Button>
    </li>
  );
}

/** How a person logs in to a member from a terminal of their own. */
export function ShellRow({ instanceId }: { instanceId: string }) {
  return (
    <li data-endpoint="shell">
      <Icon name="terminal" size={18} />
      <div className="grow stack-s">
        <div>
          <span className="strong">Log in to a member</span> <span className="tag">ssh</span>
        </div>
        <div className="row small ways">
          <Copy value={`appctl ssh ${instanceId}`} what="the command that logs in to a member" />
          <Copy
            value={`appctl ssh-config ${instanceId}`}
            what="the command that prints a configuration for ssh, scp and editors"
          />
        </div>
      </div>
    </li>
  );
}

/** One endpoint. */
export function EndpointRow({
  endpoint,
  workload,
  allowed,
  ask,
}: {
  endpoint: Endpoint;
  workload: Pick<Workload, 'id' | 'status'>;
  allowed: boolean;
  ask: Asked;
}) {
  const opening = useOpening(endpoint, ask);
  const early = endpoint.serving === 0 && workload.status !== 'RUNNING';
  return (
    <li data-endpoint={endpoint.name} data-serving={endpoint.serving}>
      <Icon name={endpoint.address === '' ? 'terminal' : 'globe'} size={18} />
      <div className="grow stack-s">
        <div>
          <span className="strong">{endpoint.title}</span> <span className="tag">{endpoint.protocol}</span>{' '}
          <span className="small faint">{servedBy(endpoint, early)}</span>
        </div>
        {!allowed ? (
          <Denied permissionKey={endpoint.permissionKey} objectId={workload.id} />
        ) : (
          <Ways endpoint={endpoint} instanceId={workload.id} />
        )}
        {opening.blocked !== undefined && <Blocked title={endpoint.title} {...opening.blocked} />}
        {opening.problem !== undefined && <ProblemNotice problem={opening.problem} />}
      </div>
      {endpoint.address !== '' && (
        <Button
          loading={opening.busy}
          disabled={!allowed || early}
          onClick={() => void opening.open()}
          rightSection={<Icon name="external" size={15} />}
        >
          Open
          <span className="hidden-visually"> {endpoint.title} in a new tab</span>
        </Button>
      )}
    </li>
  );
}

function servedBy({ serving, componentKey }: Endpoint, early: boolean): string {
  if (serving > 0) return `served by ${plural(serving, componentKey)}`;
  return early ? `nothing serves it yet` : `no healthy ${componentKey} serves it now`;
}

/** How the endpoint is reached without the button. */
function Ways({ endpoint, instanceId }: { endpoint: Endpoint; instanceId: string }) {
  const line = `appctl forward ${instanceId} ${endpoint.name}`;
  return (
    <div className="row small ways">
      {endpoint.address !== '' && <Copy value={endpoint.address} what="the address" />}
      <Copy value={line} what="the command that forwards it to a port of your machine" />
    </div>
  );
}

function Denied({ permissionKey, objectId }: { permissionKey: string; objectId: string }) {
  const answer = useAnswer(permissionKey, objectId);
  return (
    <div className="small faint" data-denied={permissionKey}>
      {answer}
    </div>
  );
}

/** The address as a link, where the browser blocks new tabs: a click on a link is never blocked. */
function Blocked({ title, address, onUse }: { title: string; address: string; onUse: () => void }) {
  return (
    <Notice tone="warn" icon="warn">
      Your browser blocked the new tab.{' '}
      <a href={address} target="_blank" rel="noopener noreferrer" onClick={onUse}>
        Open {title}
      </a>{' '}
      within 30 seconds, or click Open again.
    </Notice>
  );
}

interface Opening {
  readonly open: () => Promise<void>;
  readonly busy: boolean;
  readonly problem: Problem | undefined;
  readonly blocked: { readonly address: string; readonly onUse: () => void } | undefined;
}

/** Opens an endpoint: the tab opens in the click, and gets its address when the platform has answered. */
function useOpening(endpoint: Endpoint, ask: Asked): Opening {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [address, setAddress] = useState<string>();
  const open = async () => {
    const tab = openTab(`Opening ${endpoint.title}…`);
    setBusy(true);
    setProblem(undefined);
    setAddress(undefined);
    const answer = await ask(endpoint.name);
    setBusy(false);
    if (answer.problem !== undefined) {
      tab?.close();
      setProblem(answer.problem);
    } else if (tab === undefined) setAddress(answer.data.openEndpoint.url);
    else tab.go(answer.data.openEndpoint.url);
  };
  const blocked = address === undefined ? undefined : { address, onUse: () => setAddress(undefined) };
  return { open, busy, problem, blocked };
}
