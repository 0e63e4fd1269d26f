// A workload's runtime secrets: their list, never their values.
import { Button } from '@mantine/core';
import { useMemo, useState } from 'react';
import { tell } from '../api/hooks';
import { useRows } from '../api/pages';
import { useSession } from '../api/session';
import { RevokeRuntimeSecretDocument, RotateRuntimeSecretDocument, RuntimeSecretsDocument } from '../generated/graphql';
import type { RuntimeSecretsQuery } from '../generated/graphql';
import { fullTime, plural, words } from '../lib/format';
import { AskDialog } from '../changes/AskDialog';
import { More } from '../ui/Rows';
import { Status } from '../ui/Status';
import { Ago, Card, DataTable } from '../ui/parts';

type Row = RuntimeSecretsQuery['runtimeSecrets']['edges'][number]['node'];
const pick = (data: RuntimeSecretsQuery) => data.runtimeSecrets;

/** The card; nothing without the permission to see it, and while there are no secrets. */
export function SecretsCard({ instanceId }: { instanceId: string }) {
  const { can } = useSession();
  return can('secret.read') ? <Secrets instanceId={instanceId} /> : null;
}

function Secrets({ instanceId }: { instanceId: string }) {
  const { can } = useSession();
  const [asked, setAsked] = useState<{ what: 'rotate' | 'revoke'; row: Row }>();
  const list = useRows(
    RuntimeSecretsDocument,
    useMemo(() => ({ instanceId }), [instanceId]),
    pick,
  );
  if (list.rows.length === 0) return null;
  const done = () => {
    setAsked(undefined);
    list.refresh();
  };
  const columns = [
    {
      head: 'For',
      cell: (row: Row) => (
        <span>
          <span className="strong">{words(row.purpose)}</span>
          <span className="sub">
            to the {row.audience.toLowerCase()}, {row.delivery === 'ONCE' ? 'once' : 'until it expires'}
          </span>
        </span>
      ),
    },
    { head: 'State', cell: (row: Row) => <SecretState row={row} /> },
    {
      head: 'Delivered',
      cell: (row: Row) =>
        row.deliveries === 0 ? (
          <span className="faint">not yet</span>
        ) : (
          <span>
            {plural(row.deliveries, 'time')}
            <span className="sub">
              <Ago at={row.deliveredAt} />
            </span>
          </span>
        ),
    },
    { head: 'By', cell: (row: Row) => (row.issuedBy.name === '' ? row.issuedBy.id : row.issuedBy.name) },
    {
      head: '',
      right: true,
      cell: (row: Row) =>
        row.revokedAt === null && Date.parse(row.expiresAt) > Date.parse(row.createdAt) ? (
          <span className="row" style={{ justifyContent: 'flex-end' }}>
            {can('secret.rotate') && (
              <Button size="compact-xs" variant="default" onClick={() => setAsked({ what: 'rotate', row })}>
                Rotate
              </Button>
            )}
            {can('secret.revoke') && (
              <Button size="compact-xs" variant="default" onClick={() => setAsked({ what: 'revoke', row })}>
                Revoke
              </Button>
            )}
          </span>
        ) : null,
    },
  ];
  return (
    <Card title="Runtime secrets" pad={false} aside={<span className="small faint">Their values are never shown</span>}>
      <DataTable label="Runtime secrets" columns={columns} rows={list.rows} keyOf={(row) => row.id} />
      <More list={list} />
      {asked?.what === 'rotate' && (
        <AskDialog
          title="Rotate the secret"
          act="Rotate"
          send={(reason) => tell(RotateRuntimeSecretDocument, { secretId: asked.row.id, reason })}
          onClose={() => setAsked(undefined)}
          onDone={done}
        >
          A new value is created; the old one stays valid for five minutes.
        </AskDialog>
      )}
      {asked?.what === 'revoke' && (
        <AskDialog
          title="Revoke the secret"
          act="Revoke"
          danger
          send={(reason) => tell(RevokeRuntimeSecretDocument, { secretId: asked.row.id, reason })}
          onClose={() => setAsked(undefined)}
          onDone={done}
        >
          It is wiped, and can no longer be delivered.
        </AskDialog>
      )}
    </Card>
  );
}

function SecretState({ row }: { row: Row }) {
  if (row.revokedAt !== null) return <Status state="REMOVED" bare label="Revoked" title={fullTime(row.revokedAt)} />;
  if (row.delivery === 'ONCE' && row.deliveries > 0) return <Status state="SUCCEEDED" bare label="Used" />;
  return (
    <Status
      state="ACTIVE"
      bare
      label={
        <>
          version {row.version}, until {fullTime(row.expiresAt)}
        </>
      }
    />
  );
}
