// Setting or removing a source's credential.
import { PasswordInput, TextInput } from '@mantine/core';
import { useState } from 'react';
import { tell } from '../api/hooks';
import { ChangeDialog } from '../changes/ChangeDialog';
import { SetCredentialDocument } from '../generated/graphql';
import type { SourceBitsFragment } from '../generated/graphql';

/** The dialog, open as long as it is mounted; the credential is removed when both fields are empty. */
export function CredentialDialog({
  source,
  onClose,
  onDone,
}: {
  source: SourceBitsFragment;
  onClose: () => void;
  onDone: () => void;
}) {
  const [user, setUser] = useState(source.credentialUser);
  const [secret, setSecret] = useState('');
  const away = user.trim() === '' && secret === '';
  const wrong = new Map<string, string>();
  if (!away && secret === '') wrong.set('secret', 'Enter the secret as well, or leave both empty.');
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `The credential of ${source.name}`,
        act: away ? 'Remove it' : 'Save',
        danger: away,
        fields: ['user', 'secret'],
        wrong,
        reasonNeeded: false,
        intro:
          'It goes into custody, is used only by the platform, and is never shown again. Leave both empty to read the source without a credential.',
        send: ({ reason }) =>
          tell(SetCredentialDocument, {
            input: { sourceId: source.id, user: away ? null : user.trim(), secret: away ? null : secret, reason },
          }),
        form: (errors) => (
          <div className="stack">
            <TextInput
              label="User name or access key id"
              maxLength={200}
              autoComplete="off"
              spellCheck={false}
              value={user}
              onChange={(event) => setUser(event.currentTarget.value)}
              error={errors.get('user')}
              data-autofocus
            />
            <PasswordInput
              label="Password, token or secret key"
              maxLength={4096}
              autoComplete="new-password"
              value={secret}
              onChange={(event) => setSecret(event.currentTarget.value)}
              error={errors.get('secret')}
            />
          </div>
        ),
      }}
    />
  );
}
