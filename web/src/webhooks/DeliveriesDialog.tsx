// What was sent to a webhook, and the dead letters.
import { Button, Modal, SegmentedControl } from '@mantine/core';
import { useMemo, useState } from 'react';
import type { Problem } from '../api/errors';
import { tell } from '../api/hooks';
import { useRows } from '../api/pages';
import { useSession } from '../api/session';
import { RedeliverWebhookDocument, WebhookDeliveriesDocument } from '../generated/graphql';
import type { DeliveryState, WebhookBitsFragment, WebhookDeliveriesQuery } from '../generated/graphql';
import { words } from '../lib/format';
import { ProblemNotice } from '../ui/Problem';
import { RowsCard } from '../ui/Rows';
import { Status } from '../ui/Status';
import { Ago, Empty } from '../ui/parts';

type Row = WebhookDeliveriesQuery['webhookDeliveries']['edges'][number]['node'];
const pick = (data: WebhookDeliveriesQuery) => data.webhookDeliveries;
const tones: Readonly<Record<DeliveryState, string>> = { PENDING: 'STARTING', DELIVERED: 'SUCCEEDED', DEAD: 'FAILED' };

/** The dialog; a dead letter can be sent again. */
export function DeliveriesDialog({ webhook, onClose }: { webhook: WebhookBitsFragment; onClose: () => void }) {
  const { can } = useSession();
  const [which, setWhich] = useState('all');
  const [problem, setProblem] = useState<Problem>();
  const list = useRows(
    WebhookDeliveriesDocument,
    useMemo(
      () => ({ webhookId: webhook.id, states: which === 'all' ? null : [which as DeliveryState] }),
      [webhook.id, which],
    ),
    pick,
  );
  const again = async (row: Row) => {
    const answer = await tell(RedeliverWebhookDocument, { deliveryId: row.id });
    setProblem(answer.problem);
    list.refresh();
  };
  const columns = [
    {
      head: 'Event',
      cell: (row: Row) => (
        <span>
          <span className="strong">{row.eventType}</span>
          <span className="sub mono">{row.eventId}</span>
        </span>
      ),
    },
    {
      head: 'State',
      cell: (row: Row) => (
        <span>
          <Status state={tones[row.state]} label={words(row.state)} />
          {row.error !== '' && <span className="sub wrap-any said">{row.error}</span>}
        </span>
      ),
    },
    {
      head: 'Attempts',
      cell: (row: Row) => (
        <span className="num">
          {row.attempts}
          {row.responseStatus !== null && <span className="sub">HTTP {row.responseStatus}</span>}
        </span>
      ),
    },
    { head: 'When', cell: (row: Row) => <Ago at={row.deliveredAt ?? row.createdAt} /> },
    {
      head: '',
      right: true,
      cell: (row: Row) =>
        can('webhook.manage') && row.state !== 'PENDING' ? (
          <Button size="compact-xs" variant="default" onClick={() => void again(row)}>
            Send again
          </Button>
        ) : null,
    },
  ];
  return (
    <Modal opened onClose={onClose} title={<b>Deliveries to {webhook.url}</b>} size="xl">
      <div className="stack">
        {problem !== undefined && <ProblemNotice problem={problem} />}
        <RowsCard<Row>
          list={list}
          label="Deliveries"
          columns={columns}
          empty={<Empty icon="out" title="No deliveries" />}
        >
          <div className="card-head">
            <SegmentedControl
              size="xs"
              aria-label="Which deliveries"
              value={which}
              onChange={setWhich}
              data={[
                { value: 'all', label: 'All' },
                { value: 'PENDING', label: 'Pending' },
                { value: 'DEAD', label: 'Dead letters' },
              ]}
            />
          </div>
        </RowsCard>
      </div>
    </Modal>
  );
}
