// The project's service accounts with their keys.
import { Button, Menu } from '@mantine/core';
import { useMemo, useState } from 'react';
import { tell } from '../api/hooks';
import { useRows } from '../api/pages';
import { useProjectId, useSession } from '../api/session';
import { DeleteServiceAccountDocument, ServiceAccountsDocument } from '../generated/graphql';
import type { AccountBitsFragment, ServiceAccountsQuery } from '../generated/graphql';
import { plural, words } from '../lib/format';
import { AskDialog } from '../changes/AskDialog';
import { Icon } from '../ui/Icons';
import { RowsCard } from '../ui/Rows';
import { Ago, Copy, Empty } from '../ui/parts';
import { AccountDialog } from './AccountDialog';
import { KeysDialog } from './KeysDialog';

const pick = (data: ServiceAccountsQuery) => data.serviceAccounts;

type Asked = { what: 'edit' | 'keys' | 'delete'; row: AccountBitsFragment } | { what: 'create' };

/** The list; keys, permissions and deletion of an account are dialogs. */
export function AccountsTab() {
  const projectId = useProjectId();
  const { can } = useSession();
  const [asked, setAsked] = useState<Asked>();
  const list = useRows(
    ServiceAccountsDocument,
    useMemo(() => ({ projectId }), [projectId]),
    pick,
  );
  const close = () => setAsked(undefined);
  const fresh =
    asked !== undefined && asked.what === 'keys'
      ? (list.rows.find((row) => row.id === asked.row.id) ?? asked.row)
      : undefined;
  const columns = [
    {
      head: 'Name',
      cell: (row: AccountBitsFragment) => (
        <span>
          <span className="strong">{row.name}</span>
          <span className="sub">
            <Copy value={row.id} what="id" />
          </span>
        </span>
      ),
    },
    {
      head: 'Permissions',
      cell: (row: AccountBitsFragment) => (
        <span title={row.permissionKeys.join('\n')}>
          {plural(row.permissionKeys.length, 'key')}
          <span className="sub">
            {row.permissionKeys.slice(0, 2).join(', ')}
            {row.permissionKeys.length > 2 && ' …'}
          </span>
        </span>
      ),
    },
    { head: 'Limits', cell: (row: AccountBitsFragment) => <Limits row={row} /> },
    { head: 'Keys', cell: (row: AccountBitsFragment) => <KeysWord row={row} /> },
    { head: 'Created', cell: (row: AccountBitsFragment) => <Ago at={row.createdAt} /> },
    {
      head: '',
      right: true,
      cell: (row: AccountBitsFragment) => (
        <span className="row" style={{ justifyContent: 'flex-end' }}>
          <Button size="compact-xs" variant="default" onClick={() => setAsked({ what: 'keys', row })}>
            Keys
          </Button>
          <Menu position="bottom-end" shadow="md">
            <Menu.Target>
              <Button size="compact-xs" variant="default" aria-label={`More for ${row.name}`}>
                <Icon name="more" size={14} />
              </Button>
            </Menu.Target>
            <Menu.Dropdown>
              <Menu.Item
                disabled={!can('identity.service_account.update')}
                onClick={() => setAsked({ what: 'edit', row })}
              >
                Change its permissions
              </Menu.Item>
              <Menu.Item
                color="red"
                disabled={!can('identity.service_account.delete')}
                onClick={() => setAsked({ what: 'delete', row })}
              >
                Delete
              </Menu.Item>
            </Menu.Dropdown>
          </Menu>
        </span>
      ),
    },
  ];
  return (
    <>
      <RowsCard<AccountBitsFragment>
        list={list}
        label="Service accounts"
        columns={columns}
        empty={
          <Empty icon="audit" title="No service accounts">
            A service account lets a pipeline or a script act in this project, with an explicit list of what it may do.
          </Empty>
        }
      >
        <div className="card-head">
          <span className="small faint">Automation identities of this project</span>
          {can('identity.service_account.create') && (
            <Button size="xs" leftSection={<Icon name="plus" size={14} />} onClick={() => setAsked({ what: 'create' })}>
              Create one
            </Button>
          )}
        </div>
      </RowsCard>
      {asked?.what === 'create' && <AccountDialog account={undefined} onClose={close} onDone={list.refresh} />}
      {asked?.what === 'edit' && <AccountDialog account={asked.row} onClose={close} onDone={list.refresh} />}
      {fresh !== undefined && <KeysDialog account={fresh} onClose={close} refresh={list.refresh} />}
      {asked?.what === 'delete' && (
        <AskDialog
          title={`Delete ${asked.row.name}`}
          act="Delete"
          danger
          send={(reason) => tell(DeleteServiceAccountDocument, { serviceAccountId: asked.row.id, reason })}
          onClose={close}
          onDone={list.refresh}
        >
          Its keys, and every token created with them, stop working immediately.
        </AskDialog>
      )}
    </>
  );
}

function Limits({ row }: { row: AccountBitsFragment }) {
  const { limits } = row;
  if (limits === null) return <span className="faint">none</span>;
  return (
    <span className="small">
      {limits.objectIds !== null && <span className="sub">only {plural(limits.objectIds.length, 'object')}</span>}
      {limits.maxRisk !== null && <span className="sub">actions up to {words(limits.maxRisk).toLowerCase()}</span>}
      {limits.operationsPerHour !== null && <span className="sub">{limits.operationsPerHour} operations per hour</span>}
    </span>
  );
}

function KeysWord({ row }: { row: AccountBitsFragment }) {
  const live = row.keys.filter(
    (key) =>
      key.revokedAt === null && (key.expiresAt === null || Date.parse(key.expiresAt) > Date.parse(row.createdAt)),
  );
  const used =
    live
      .map((key) => key.lastUsedAt ?? '')
      .sort()
      .at(-1) ?? '';
  return (
    <span>
      {plural(live.length, 'key')}
      <span className="sub">
        {used === '' ? (
          'never used'
        ) : (
          <>
            used <Ago at={used} />
          </>
        )}
      </span>
    </span>
  );
}
