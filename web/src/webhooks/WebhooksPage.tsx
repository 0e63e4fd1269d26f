// The project's webhooks: where its events are sent, and the state of delivery.
import { Button, Menu } from '@mantine/core';
import { useMemo, useState } from 'react';
import type { Problem } from '../api/errors';
import { tell } from '../api/hooks';
import { useRows } from '../api/pages';
import { useProjectId, useSession } from '../api/session';
import {
  DeleteWebhookDocument,
  RotateWebhookSecretDocument,
  UpdateWebhookDocument,
  WebhooksDocument,
} from '../generated/graphql';
import type { WebhookBitsFragment, WebhooksQuery } from '../generated/graphql';
import { words } from '../lib/format';
import { AskDialog } from '../changes/AskDialog';
import { headOf } from '../lib/places';
import { Icon } from '../ui/Icons';
import { ProblemNotice } from '../ui/Problem';
import { RowsCard } from '../ui/Rows';
import { SecretOnce } from '../ui/SecretOnce';
import { Status } from '../ui/Status';
import { Ago, Empty, PageHead } from '../ui/parts';
import { DeliveriesDialog } from './DeliveriesDialog';
import { WebhookDialog } from './WebhookDialog';

const pick = (data: WebhooksQuery) => data.webhooks;
const tones: Readonly<Record<WebhookBitsFragment['status'], string>> = {
  ACTIVE: 'ACTIVE',
  PAUSED: 'PENDING',
  FAILING: 'FAILED',
};

type Asked = { what: 'edit' | 'delete' | 'deliveries'; row: WebhookBitsFragment } | { what: 'create' };

/** The list; a new secret is shown once. */
export function WebhooksPage() {
  const projectId = useProjectId();
  const { can } = useSession();
  const [asked, setAsked] = useState<Asked>();
  const [secret, setSecret] = useState<string>();
  const [problem, setProblem] = useState<Problem>();
  const list = useRows(
    WebhooksDocument,
    useMemo(() => ({ projectId }), [projectId]),
    pick,
  );
  const close = () => setAsked(undefined);
  const done = () => {
    close();
    list.refresh();
  };
  const rotate = async (row: WebhookBitsFragment) => {
    const answer = await tell(RotateWebhookSecretDocument, { webhookId: row.id });
    setProblem(answer.problem);
    setSecret(answer.data?.rotateWebhookSecret.secret ?? undefined);
    list.refresh();
  };
  const pause = async (row: WebhookBitsFragment) => {
    const answer = await tell(UpdateWebhookDocument, { input: { webhookId: row.id, paused: row.status === 'ACTIVE' } });
    setProblem(answer.problem);
    list.refresh();
  };
  const manage = can('webhook.manage');
  const columns = [
    {
      head: 'Address',
      cell: (row: WebhookBitsFragment) => (
        <span>
          <span className="strong wrap-any">{row.url}</span>
          <span className="sub">{row.description}</span>
        </span>
      ),
    },
    {
      head: 'Events',
      cell: (row: WebhookBitsFragment) => (
        <span className="small">
          {row.eventTypes.map((type) => (
            <code key={type} style={{ marginRight: 6 }}>
              {type}
            </code>
          ))}
        </span>
      ),
    },
    {
      head: 'State',
      cell: (row: WebhookBitsFragment) => (
        <span>
          <Status state={tones[row.status]} label={words(row.status)} />
          {row.lastError !== '' && <span className="sub wrap-any said">{row.lastError}</span>}
        </span>
      ),
    },
    { head: 'Last delivered', cell: (row: WebhookBitsFragment) => <Ago at={row.lastDeliveredAt} /> },
    {
      head: '',
      right: true,
      cell: (row: WebhookBitsFragment) => (
        <span className="row" style={{ justifyContent: 'flex-end' }}>
          <Button size="compact-xs" variant="default" onClick={() => setAsked({ what: 'deliveries', row })}>
            Deliveries
          </Button>
          {manage && (
            <Menu position="bottom-end" shadow="md">
              <Menu.Target>
                <Button size="compact-xs" variant="default" aria-label={`More for ${row.url}`}>
                  <Icon name="more" size={14} />
                </Button>
              </Menu.Target>
              <Menu.Dropdown>
                <Menu.Item onClick={() => setAsked({ what: 'edit', row })}>Change</Menu.Item>
                <Menu.Item onClick={() => void pause(row)}>{row.status === 'ACTIVE' ? 'Pause' : 'Resume'}</Menu.Item>
                <Menu.Item onClick={() => void rotate(row)}>Rotate the secret</Menu.Item>
                <Menu.Item color="red" onClick={() => setAsked({ what: 'delete', row })}>
                  Delete
                </Menu.Item>
              </Menu.Dropdown>
            </Menu>
          )}
        </span>
      ),
    },
  ];
  return (
    <div className="page">
      <PageHead
        {...headOf('/webhooks')}
        actions={
          manage && (
            <Button leftSection={<Icon name="plus" size={14} />} onClick={() => setAsked({ what: 'create' })}>
              Create a webhook
            </Button>
          )
        }
      />
      {problem !== undefined && <ProblemNotice problem={problem} />}
      <RowsCard<WebhookBitsFragment>
        list={list}
        label="Webhooks"
        columns={columns}
        empty={
          <Empty icon="out" title="No webhooks">
            Events of this project are not sent anywhere.
          </Empty>
        }
      />
      {asked?.what === 'create' && (
        <WebhookDialog
          webhook={undefined}
          onClose={close}
          onDone={(made) => {
            setSecret(made);
            done();
          }}
        />
      )}
      {asked?.what === 'edit' && <WebhookDialog webhook={asked.row} onClose={close} onDone={done} />}
      {asked?.what === 'deliveries' && <DeliveriesDialog webhook={asked.row} onClose={close} />}
      {asked?.what === 'delete' && (
        <AskDialog
          title="Delete the webhook"
          act="Delete"
          danger
          send={(reason) => tell(DeleteWebhookDocument, { webhookId: asked.row.id, reason })}
          onClose={close}
          onDone={done}
        >
          Pending deliveries are dropped.
        </AskDialog>
      )}
      <SecretOnce title="The webhook’s signing secret" secret={secret} onClose={() => setSecret(undefined)} />
    </div>
  );
}
