// The keys of a service account: creating, rotating, revoking.
import { Button, Modal, Select } from '@mantine/core';
import { useState } from 'react';
import type { Problem } from '../api/errors';
import { tell } from '../api/hooks';
import { useSession } from '../api/session';
import {
  CreateServiceAccountKeyDocument,
  RevokeServiceAccountKeyDocument,
  RotateServiceAccountKeyDocument,
} from '../generated/graphql';
import type { AccountBitsFragment } from '../generated/graphql';
import { fullTime, shorten } from '../lib/format';
import { ProblemNotice } from '../ui/Problem';
import { SecretOnce } from '../ui/SecretOnce';
import { Status } from '../ui/Status';
import { Ago, DataTable, Empty } from '../ui/parts';
import { endOf, lifetimes } from './lifetimes';

type Key = AccountBitsFragment['keys'][number];

/** Seconds for which an old key and its successor both work. */
const overlap = 86_400;

/** The dialog; a new key's secret is shown once. */
export function KeysDialog({
  account,
  onClose,
  refresh,
}: {
  account: AccountBitsFragment;
  onClose: () => void;
  refresh: () => void;
}) {
  const { can } = useSession();
  const [life, setLife] = useState('2160');
  const [secret, setSecret] = useState<string>();
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState('');
  const run = async (
    id: string,
    what: () => Promise<{ problem?: Problem | undefined; secret?: string | undefined }>,
  ) => {
    setBusy(id);
    const answer = await what();
    setBusy('');
    setProblem(answer.problem);
    setSecret(answer.secret);
    refresh();
  };
  const make = () =>
    run('make', async () => {
      const answer = await tell(CreateServiceAccountKeyDocument, {
        input: { serviceAccountId: account.id, expiresAt: endOf(life) },
      });
      return { problem: answer.problem, secret: answer.data?.createServiceAccountKey.secret };
    });
  const rotate = (key: Key) =>
    run(key.id, async () => {
      const answer = await tell(RotateServiceAccountKeyDocument, {
        input: { keyId: key.id, overlapSeconds: overlap, expiresAt: null, reason: null },
      });
      return { problem: answer.problem, secret: answer.data?.rotateServiceAccountKey.secret };
    });
  const revoke = (key: Key) =>
    run(key.id, async () => ({
      problem: (await tell(RevokeServiceAccountKeyDocument, { keyId: key.id, reason: null })).problem,
    }));
  const columns = [
    {
      head: 'Key',
      cell: (row: Key) => (
        <span className="mono fixed" title={row.id}>
          {shorten(row.id, 8, 6)}
        </span>
      ),
    },
    { head: 'State', cell: (row: Key) => <KeyState row={row} /> },
    { head: 'Last used', cell: (row: Key) => <Ago at={row.lastUsedAt} /> },
    { head: 'Created', cell: (row: Key) => <Ago at={row.createdAt} /> },
    {
      head: '',
      right: true,
      cell: (row: Key) =>
        row.revokedAt !== null ? null : (
          <span className="row" style={{ justifyContent: 'flex-end' }}>
            {row.replacedBy === null && can('identity.service_account.key.create') && (
              <Button size="compact-xs" variant="default" loading={busy === row.id} onClick={() => void rotate(row)}>
                Rotate
              </Button>
            )}
            {can('identity.service_account.key.revoke') && (
              <Button
                size="compact-xs"
                variant="default"
                color="red"
                loading={busy === row.id}
                onClick={() => void revoke(row)}
              >
                Revoke
              </Button>
            )}
          </span>
        ),
    },
  ];
  return (
    <Modal opened onClose={onClose} title={<b>Keys of {account.name}</b>} size="xl">
      <div className="stack">
        {problem !== undefined && <ProblemNotice problem={problem} />}
        {account.keys.length === 0 ? (
          <Empty icon="audit" title="No keys yet" />
        ) : (
          <div className="framed">
            <DataTable label="Keys" columns={columns} rows={account.keys} keyOf={(row) => row.id} />
          </div>
        )}
        {can('identity.service_account.key.create') && (
          <div className="row" style={{ justifyContent: 'flex-end', alignItems: 'flex-end' }}>
            <Select
              label="Valid for"
              size="xs"
              data={lifetimes}
              value={life}
              onChange={(next) => setLife(next ?? '')}
              allowDeselect={false}
            />
            <Button size="xs" loading={busy === 'make'} onClick={() => void make()}>
              Create a key
            </Button>
          </div>
        )}
        <p className="small faint">Rotating creates a new key. Both keys work for one day.</p>
      </div>
      <SecretOnce title={`New key of ${account.name}`} secret={secret} onClose={() => setSecret(undefined)} />
    </Modal>
  );
}

function KeyState({ row }: { row: Key }) {
  if (row.revokedAt !== null) return <Status state="REMOVED" bare label="Revoked" title={fullTime(row.revokedAt)} />;
  if (row.replacedBy !== null)
    return (
      <Status
        state="DRAINING"
        bare
        label={row.expiresAt === null ? 'Rotated' : `Rotated, expires ${fullTime(row.expiresAt)}`}
      />
    );
  return (
    <Status state="ACTIVE" bare label={row.expiresAt === null ? 'Active' : `Active until ${fullTime(row.expiresAt)}`} />
  );
}
