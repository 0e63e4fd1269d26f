// The runners whose signed reports count; the platform's staff register and revoke them here.
import { Button, TextInput } from '@mantine/core';
import { useState } from 'react';
import { tell, useRead } from '../api/hooks';
import { useSession } from '../api/session';
import { AskDialog } from '../changes/AskDialog';
import { ChangeDialog } from '../changes/ChangeDialog';
import { RegisterRunnerDocument, RevokeRunnerDocument, RunnersDocument } from '../generated/graphql';
import type { RunnersQuery } from '../generated/graphql';
import { shorten } from '../lib/format';
import { ProblemNotice } from '../ui/Problem';
import { Status } from '../ui/Status';
import { Ago, Card, Copy, DataTable, Empty, Loading } from '../ui/parts';

type Runner = RunnersQuery['evidenceRunners'][number];

/** The card. */
export function RunnersCard() {
  const { staff } = useSession();
  const { data, problem, refresh } = useRead(RunnersDocument, {});
  const [registering, setRegistering] = useState(false);
  const [revoking, setRevoking] = useState<Runner>();
  if (data === undefined)
    return (
      <Card title="Runners">
        {problem === undefined ? <Loading /> : <ProblemNotice problem={problem} onRetry={refresh} />}
      </Card>
    );
  const runners = data.evidenceRunners;
  return (
    <Card
      title="Runners"
      label="Runners"
      pad={false}
      aside={
        staff && (
          <Button size="compact-xs" variant="default" onClick={() => setRegistering(true)}>
            Register a runner
          </Button>
        )
      }
    >
      {runners.length === 0 ? (
        <Empty icon="policy" title="No runner is registered">
          Reports and smokes count for other tenants when a registered runner has signed them.
        </Empty>
      ) : (
        <DataTable<Runner>
          label="Runners"
          rows={runners}
          keyOf={(row) => row.id}
          columns={columns(staff, setRevoking)}
        />
      )}
      {registering && <RegisterDialog onClose={() => setRegistering(false)} onDone={refresh} />}
      {revoking !== undefined && (
        <AskDialog
          title={`Revoke ${revoking.name}`}
          act="Revoke"
          danger
          reasonNeeded
          send={(reason) => tell(RevokeRunnerDocument, { runnerId: revoking.id, reason: reason ?? '' })}
          onClose={() => setRevoking(undefined)}
          onDone={refresh}
        >
          Reports that it signed no longer count. Versions keep their stages.
        </AskDialog>
      )}
    </Card>
  );
}

function columns(staff: boolean, revoke: (row: Runner) => void) {
  return [
    { head: 'Runner', cell: (row: Runner) => <span className="strong">{row.name}</span> },
    {
      head: 'Public key',
      cell: (row: Runner) => <Copy value={row.publicKey} shown={shorten(row.publicKey, 10, 6)} what="public key" />,
    },
    { head: 'Registered', cell: (row: Runner) => <Ago at={row.createdAt} /> },
    {
      head: 'Its reports',
      cell: (row: Runner) =>
        row.revokedAt === null ? (
          <Status state="ACTIVE" label="Count" />
        ) : (
          <span>
            <Status state="FAILED" label="Revoked" />
            <span className="sub">{row.revokeReason}</span>
          </span>
        ),
    },
    {
      head: '',
      right: true,
      cell: (row: Runner) =>
        staff &&
        row.revokedAt === null && (
          <Button size="compact-xs" variant="light" color="red" onClick={() => revoke(row)}>
            Revoke
          </Button>
        ),
    },
  ];
}

function RegisterDialog({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [name, setName] = useState('');
  const [key, setKey] = useState('');
  const wrong = new Map<string, string>();
  if (name.trim() === '') wrong.set('name', 'Enter a name.');
  if (key.trim() === '') wrong.set('publicKey', 'Enter the key.');
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: 'Register a runner',
        act: 'Register',
        fields: ['name', 'publicKey'],
        wrong,
        reasonNeeded: true,
        intro:
          'Reports that it signs count for every tenant. Its private key stays on its machine; do not register a key that a publisher has.',
        send: ({ reason }) =>
          tell(RegisterRunnerDocument, { input: { name: name.trim(), publicKey: key.trim(), reason: reason ?? '' } }),
        form: (errors) => (
          <div className="stack">
            <TextInput
              label="Name"
              description="2 to 40 lower-case letters, digits and hyphens"
              required
              maxLength={40}
              spellCheck={false}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={errors.get('name')}
              data-autofocus
            />
            <TextInput
              label="Public key"
              description="Ed25519, 32 bytes in base64"
              required
              maxLength={60}
              spellCheck={false}
              value={key}
              onChange={(event) => setKey(event.currentTarget.value)}
              error={errors.get('publicKey')}
            />
          </div>
        ),
      }}
    />
  );
}
