// Trusting a public key at a source.
import { TextInput, Textarea } from '@mantine/core';
import { useState } from 'react';
import { tell } from '../api/hooks';
import { ChangeDialog } from '../changes/ChangeDialog';
import { AddKeyDocument } from '../generated/graphql';
import type { SourceBitsFragment } from '../generated/graphql';

/** The dialog, open as long as it is mounted. */
export function KeyDialog({
  source,
  onClose,
  onDone,
}: {
  source: SourceBitsFragment;
  onClose: () => void;
  onDone: () => void;
}) {
  const [name, setName] = useState('');
  const [publicKey, setPublicKey] = useState('');
  const [until, setUntil] = useState('');
  const wrong = new Map<string, string>();
  if (name.trim() === '') wrong.set('name', 'Enter a name.');
  if (!publicKey.includes('-----BEGIN PUBLIC KEY-----'))
    wrong.set('publicKey', 'Paste a PEM that begins with -----BEGIN PUBLIC KEY-----.');
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Trust a key at ${source.name}`,
        act: 'Trust',
        fields: ['name', 'publicKey', 'validUntil'],
        wrong,
        reasonNeeded: false,
        intro: 'Signatures by this key are trusted for everything that comes from the source.',
        send: ({ reason }) =>
          tell(AddKeyDocument, {
            input: {
              sourceId: source.id,
              name: name.trim(),
              publicKey,
              validUntil: until === '' ? null : new Date(until).toISOString(),
              reason,
            },
          }),
        form: (errors) => (
          <div className="stack">
            <TextInput
              label="Name"
              required
              maxLength={80}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={errors.get('name')}
              data-autofocus
            />
            <Textarea
              label="Public key"
              description="PEM, ECDSA P-256 or Ed25519"
              required
              autosize
              minRows={4}
              maxRows={8}
              maxLength={2000}
              spellCheck={false}
              value={publicKey}
              onChange={(event) => setPublicKey(event.currentTarget.value)}
              error={errors.get('publicKey')}
              styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 12.5 } }}
            />
            <TextInput
              type="datetime-local"
              label="Until"
              description="Leave empty for no expiry"
              value={until}
              onChange={(event) => setUntil(event.currentTarget.value)}
              error={errors.get('validUntil')}
            />
          </div>
        ),
      }}
    />
  );
}
