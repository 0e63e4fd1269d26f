// Who has which role in the project or its tenant.
import { Button, SegmentedControl } from '@mantine/core';
import { useMemo, useState } from 'react';
import { tell } from '../api/hooks';
import { useRows } from '../api/pages';
import { useProjectId, useSession } from '../api/session';
import { RevokeRoleDocument, RoleBindingsDocument } from '../generated/graphql';
import type { BindingBitsFragment, RoleBindingsQuery } from '../generated/graphql';
import { fullTime, words } from '../lib/format';
import { AskDialog } from '../changes/AskDialog';
import { Icon } from '../ui/Icons';
import { RowsCard } from '../ui/Rows';
import { Status } from '../ui/Status';
import { Ago, Copy, Empty } from '../ui/parts';
import { GrantDialog } from './GrantDialog';
import { MadeUnderDialog } from './MadeUnderDialog';
import { usePeople } from './usePeople';

const pick = (data: RoleBindingsQuery) => data.roleBindings;

/** The list, with granting and revoking. */
export function RolesTab() {
  const projectId = useProjectId();
  const { can } = useSession();
  const people = usePeople();
  const [ended, setEnded] = useState(false);
  const [granting, setGranting] = useState(false);
  const [revoked, setRevoked] = useState<BindingBitsFragment>();
  const [emergency, setEmergency] = useState<BindingBitsFragment>();
  const list = useRows(
    RoleBindingsDocument,
    useMemo(() => ({ tenantId: null, projectId, ended }), [projectId, ended]),
    pick,
  );
  const columns = [
    {
      head: 'Who',
      cell: (row: BindingBitsFragment) => (
        <span>
          <span className="strong">{people.nameOf(row.subjectId)}</span>
          <span className="sub">
            <Copy value={row.subjectId} what="id" />
          </span>
        </span>
      ),
    },
    {
      head: 'Role',
      cell: (row: BindingBitsFragment) => (
        <span>
          {words(row.role)}
          {row.breakGlass && (
            <>
              {' '}
              <span className="tag tone-bad" style={{ color: 'var(--bad)' }}>
                break-glass
              </span>{' '}
              <Button size="compact-xs" variant="subtle" onClick={() => setEmergency(row)}>
                What was created
              </Button>
            </>
          )}
        </span>
      ),
    },
    {
      head: 'On',
      cell: (row: BindingBitsFragment) =>
        row.projectId !== null ? 'this project' : row.tenantId !== null ? 'the whole tenant' : 'the platform',
    },
    { head: 'State', cell: (row: BindingBitsFragment) => <BindingState row={row} /> },
    {
      head: 'Reason',
      cell: (row: BindingBitsFragment) =>
        row.reason === '' ? <span className="faint">—</span> : <span className="wrap-any">{row.reason}</span>,
    },
    { head: 'Since', cell: (row: BindingBitsFragment) => <Ago at={row.createdAt} /> },
    {
      head: '',
      right: true,
      cell: (row: BindingBitsFragment) =>
        row.revokedAt === null && can('identity.binding.revoke') ? (
          <Button size="compact-xs" variant="default" onClick={() => setRevoked(row)}>
            Revoke
          </Button>
        ) : null,
    },
  ];
  return (
    <>
      <RowsCard<BindingBitsFragment>
        list={list}
        label="Roles"
        columns={columns}
        empty={<Empty icon="audit" title="No one has a role here" />}
      >
        <div className="card-head">
          <SegmentedControl
            size="xs"
            aria-label="Which roles"
            value={ended ? 'all' : 'live'}
            onChange={(next) => setEnded(next === 'all')}
            data={[
              { value: 'live', label: 'Current' },
              { value: 'all', label: 'Including ended' },
            ]}
          />
          {can('identity.binding.grant') && (
            <Button size="xs" leftSection={<Icon name="plus" size={14} />} onClick={() => setGranting(true)}>
              Grant a role
            </Button>
          )}
        </div>
      </RowsCard>
      {granting && <GrantDialog people={people.list} onClose={() => setGranting(false)} onDone={list.refresh} />}
      {emergency !== undefined && (
        <MadeUnderDialog
          binding={emergency}
          who={people.nameOf(emergency.subjectId)}
          onClose={() => setEmergency(undefined)}
        />
      )}
      {revoked !== undefined && (
        <AskDialog
          title={`Revoke the role ${words(revoked.role)}`}
          act="Revoke"
          danger
          send={(reason) => tell(RevokeRoleDocument, { bindingId: revoked.id, reason })}
          onClose={() => setRevoked(undefined)}
          onDone={list.refresh}
        >
          {people.nameOf(revoked.subjectId)} loses the role immediately; their live subscriptions end within seconds.
        </AskDialog>
      )}
    </>
  );
}

function BindingState({ row }: { row: BindingBitsFragment }) {
  if (row.revokedAt !== null) return <Status state="REMOVED" bare label="Revoked" title={fullTime(row.revokedAt)} />;
  if (row.expiresAt !== null) return <Status state="ACTIVE" bare label={`until ${fullTime(row.expiresAt)}`} />;
  return <Status state="ACTIVE" bare label="Active" />;
}
