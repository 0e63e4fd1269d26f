// Which apps the project may launch, and within which limits.
import { Button, NumberInput, SegmentedControl, Select, TagsInput } from '@mantine/core';
import { useMemo, useState } from 'react';
import { tell, useRead } from '../api/hooks';
import { useRows } from '../api/pages';
import { useProjectId, useSession } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import {
  AppSlugsDocument,
  EntitlementsDocument,
  GrantEntitlementDocument,
  RevokeEntitlementDocument,
} from '../generated/graphql';
import type { EntitlementBitsFragment, EntitlementsQuery } from '../generated/graphql';
import { fullTime } from '../lib/format';
import { AskDialog } from '../changes/AskDialog';
import { Icon } from '../ui/Icons';
import { RowsCard } from '../ui/Rows';
import { Status } from '../ui/Status';
import { Ago, Empty } from '../ui/parts';
import { endOf, lifetimes } from './lifetimes';

const pick = (data: EntitlementsQuery) => data.entitlements;

/** The list, with granting, changing and revoking. */
export function EntitlementsTab() {
  const projectId = useProjectId();
  const { can } = useSession();
  const [ended, setEnded] = useState(false);
  const [granting, setGranting] = useState<EntitlementBitsFragment | 'new'>();
  const [revoked, setRevoked] = useState<EntitlementBitsFragment>();
  const list = useRows(
    EntitlementsDocument,
    useMemo(() => ({ projectId, ended }), [projectId, ended]),
    pick,
  );
  const done = () => {
    setGranting(undefined);
    setRevoked(undefined);
    list.refresh();
  };
  const manage = can('entitlement.manage');
  const columns = [
    { head: 'App', cell: (row: EntitlementBitsFragment) => <span className="strong">{row.appSlug}</span> },
    {
      head: 'Limits',
      cell: (row: EntitlementBitsFragment) => (
        <span>{bounds(row).join(', ') || <span className="faint">no limits</span>}</span>
      ),
    },
    {
      head: 'State',
      cell: (row: EntitlementBitsFragment) =>
        row.revokedAt !== null ? (
          <Status state="REMOVED" bare label="Revoked" />
        ) : (
          <Status state="ACTIVE" bare label={row.expiresAt === null ? 'Active' : `until ${fullTime(row.expiresAt)}`} />
        ),
    },
    {
      head: 'Reason',
      cell: (row: EntitlementBitsFragment) =>
        row.reason === '' ? <span className="faint">—</span> : <span className="wrap-any">{row.reason}</span>,
    },
    { head: 'Since', cell: (row: EntitlementBitsFragment) => <Ago at={row.createdAt} /> },
    {
      head: '',
      right: true,
      cell: (row: EntitlementBitsFragment) =>
        manage && row.revokedAt === null ? (
          <span className="row" style={{ justifyContent: 'flex-end' }}>
            <Button size="compact-xs" variant="default" onClick={() => setGranting(row)}>
              Change
            </Button>
            <Button size="compact-xs" variant="default" onClick={() => setRevoked(row)}>
              Revoke
            </Button>
          </span>
        ) : null,
    },
  ];
  return (
    <>
      <RowsCard<EntitlementBitsFragment>
        list={list}
        label="Entitlements"
        columns={columns}
        empty={
          <Empty icon="catalog" title="No apps enabled">
            The project can launch an app once it is entitled to it.
          </Empty>
        }
      >
        <div className="card-head">
          <SegmentedControl
            size="xs"
            aria-label="Which entitlements"
            value={ended ? 'all' : 'live'}
            onChange={(next) => setEnded(next === 'all')}
            data={[
              { value: 'live', label: 'Current' },
              { value: 'all', label: 'Including ended' },
            ]}
          />
          {manage && (
            <Button size="xs" leftSection={<Icon name="plus" size={14} />} onClick={() => setGranting('new')}>
              Enable an app
            </Button>
          )}
        </div>
      </RowsCard>
      {granting !== undefined && (
        <EntitlementDialog
          row={granting === 'new' ? undefined : granting}
          onClose={() => setGranting(undefined)}
          onDone={done}
        />
      )}
      {revoked !== undefined && (
        <AskDialog
          title={`Revoke the entitlement to ${revoked.appSlug}`}
          act="Revoke"
          danger
          send={(reason) => tell(RevokeEntitlementDocument, { projectId, appSlug: revoked.appSlug, reason })}
          onClose={() => setRevoked(undefined)}
          onDone={done}
        >
          Running workloads continue; no new ones of this app can be launched.
        </AskDialog>
      )}
    </>
  );
}

function bounds(row: EntitlementBitsFragment): string[] {
  return [
    ...(row.maxInstances === null ? [] : [`${row.maxInstances} instances`]),
    ...(row.maxMembers === null ? [] : [`${row.maxMembers} members each`]),
    ...(row.maxGpus === null ? [] : [`${row.maxGpus} GPUs each`]),
    ...(row.versions.length === 0 ? [] : [`versions ${row.versions.join(' or ')}`]),
  ];
}

const count = (value: number | string) => (value === '' ? null : Number(value));

function EntitlementDialog({
  row,
  onClose,
  onDone,
}: {
  row: EntitlementBitsFragment | undefined;
  onClose: () => void;
  onDone: () => void;
}) {
  const projectId = useProjectId();
  const { data } = useRead(AppSlugsDocument, {});
  const [slug, setSlug] = useState(row?.appSlug ?? '');
  const [instances, setInstances] = useState<number | string>(row?.maxInstances ?? '');
  const [members, setMembers] = useState<number | string>(row?.maxMembers ?? '');
  const [gpus, setGpus] = useState<number | string>(row?.maxGpus ?? '');
  const [versions, setVersions] = useState<string[]>([...(row?.versions ?? [])]);
  const [life, setLife] = useState('');
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: row === undefined ? 'Enable an app' : `Change the entitlement to ${row.appSlug}`,
        act: row === undefined ? 'Enable' : 'Save',
        fields: ['appSlug', 'limits', 'expiresAt'],
        reasonNeeded: false,
        wrong: slug === '' ? new Map([['appSlug', 'Choose an app.']]) : new Map(),
        intro: 'An empty field means no limit. Running workloads continue.',
        send: ({ reason }) =>
          tell(GrantEntitlementDocument, {
            projectId,
            appSlug: slug,
            limits: { maxInstances: count(instances), maxMembers: count(members), maxGpus: count(gpus), versions },
            expiresAt: endOf(life),
            reason,
          }),
        form: (errors) => (
          <div className="form-grid">
            {row === undefined && (
              <Select
                className="wide"
                label="App"
                searchable
                required
                data={(data?.apps.edges ?? []).map(({ node }) => ({ value: node.slug, label: node.displayName }))}
                value={slug}
                onChange={(next) => setSlug(next ?? '')}
                error={errors.get('appSlug')}
              />
            )}
            <NumberInput
              label="Live instances"
              placeholder="No limit"
              min={1}
              max={10_000}
              allowDecimal={false}
              value={instances}
              onChange={setInstances}
              error={errors.get('limits')}
            />
            <NumberInput
              label="Members per instance"
              placeholder="No limit"
              min={1}
              max={10_000}
              allowDecimal={false}
              value={members}
              onChange={setMembers}
            />
            <NumberInput
              label="GPUs per instance"
              placeholder="No limit"
              min={1}
              max={100_000}
              allowDecimal={false}
              value={gpus}
              onChange={setGpus}
            />
            <Select
              label="For how long"
              allowDeselect={false}
              data={lifetimes}
              value={life}
              onChange={(next) => setLife(next ?? '')}
              error={errors.get('expiresAt')}
            />
            <TagsInput
              className="wide"
              label="Versions"
              description="Constraints, such as >=1.2 <2; leave empty for all versions"
              value={versions}
              onChange={setVersions}
              maxTags={20}
            />
          </div>
        ),
      }}
    />
  );
}
