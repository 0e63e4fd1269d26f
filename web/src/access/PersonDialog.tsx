// Adding a person to the tenant.
import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { useSender } from '../api/hooks';
import { ChangeDialog } from '../changes/ChangeDialog';
import { CreatePersonDocument } from '../generated/graphql';

/** The dialog; the person is invited afterwards, unless a verified domain covers the address. */
export function PersonDialog({
  tenantId,
  onClose,
  onDone,
}: {
  tenantId: string;
  onClose: () => void;
  onDone: () => void;
}) {
  const [email, setEmail] = useState('');
  const [name, setName] = useState('');
  const add = useSender(CreatePersonDocument);
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: 'Add a person',
        act: 'Add',
        fields: ['email', 'displayName'],
        reasonNeeded: false,
        reasonKept: false,
        intro: 'The person accepts by a login of their own with this address: invite them next.',
        wrong: email === '' ? new Map([['email', 'Enter an address.']]) : new Map(),
        send: () => add({ tenantId, email, displayName: name === '' ? email : name }),
        form: (errors) => (
          <div className="stack">
            <TextInput
              label="Address"
              type="email"
              required
              maxLength={254}
              value={email}
              onChange={(event) => setEmail(event.currentTarget.value.trim())}
              error={errors.get('email')}
            />
            <TextInput
              label="Name"
              description="The address if empty"
              maxLength={100}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={errors.get('displayName')}
            />
          </div>
        ),
      }}
    />
  );
}
