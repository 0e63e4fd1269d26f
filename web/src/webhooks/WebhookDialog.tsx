// Creating or changing a webhook.
import { TagsInput, TextInput } from '@mantine/core';
import { useRef, useState } from 'react';
import { tell, useSender } from '../api/hooks';
import { useProjectId } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import { CreateWebhookDocument, UpdateWebhookDocument } from '../generated/graphql';
import type { WebhookBitsFragment } from '../generated/graphql';

const types = [
  'apps.instance.*',
  'apps.instance.requested',
  'apps.instance.running',
  'apps.instance.failed',
  'apps.instance.deleting',
  'apps.instance.deleted',
];

/** The dialog; `onDone` receives the new secret when one was created. */
export function WebhookDialog({
  webhook,
  onClose,
  onDone,
}: {
  webhook: WebhookBitsFragment | undefined;
  onClose: () => void;
  onDone: (secret: string | undefined) => void;
}) {
  const projectId = useProjectId();
  const create = useSender(CreateWebhookDocument);
  const [url, setUrl] = useState(webhook?.url ?? 'https://');
  const [what, setWhat] = useState<string[]>([...(webhook?.eventTypes ?? ['apps.instance.*'])]);
  const [description, setDescription] = useState(webhook?.description ?? '');
  const secret = useRef<string>(undefined); // read when the dialog is done, before it is drawn again
  const send = async () => {
    if (webhook !== undefined)
      return tell(UpdateWebhookDocument, { input: { webhookId: webhook.id, url, eventTypes: what, description } });
    const answer = await create({ projectId, url, eventTypes: what, description });
    secret.current = answer.data?.createWebhook.secret ?? undefined;
    return answer;
  };
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={() => onDone(secret.current)}
      change={{
        title: webhook === undefined ? 'Create a webhook' : 'Change the webhook',
        act: webhook === undefined ? 'Create' : 'Save',
        fields: ['url', 'eventTypes', 'description'],
        reasonNeeded: false,
        reasonKept: false,
        wrong: what.length === 0 ? new Map([['eventTypes', 'Choose at least one event type.']]) : new Map(),
        intro:
          'It receives events from now on. Verify the signature of each delivery with a Standard Webhooks library.',
        send,
        form: (errors) => (
          <div className="stack">
            <TextInput
              label="Where events are sent"
              required
              maxLength={2000}
              spellCheck={false}
              value={url}
              onChange={(event) => setUrl(event.currentTarget.value)}
              error={errors.get('url')}
              data-autofocus
            />
            <TagsInput
              label="Which events"
              description="Types, or prefixes that end in .*"
              required
              data={types}
              value={what}
              onChange={setWhat}
              maxTags={50}
              error={errors.get('eventTypes')}
            />
            <TextInput
              label="Description"
              maxLength={200}
              value={description}
              onChange={(event) => setDescription(event.currentTarget.value)}
              error={errors.get('description')}
            />
          </div>
        ),
      }}
    />
  );
}
