// The sources of artifacts, each with its credential and the keys whose signatures are trusted there.
import { Button, Menu } from '@mantine/core';
import { useMemo, useState } from 'react';
import { tell } from '../api/hooks';
import { useRows } from '../api/pages';
import { useSession } from '../api/session';
import { RevokeKeyDocument, SourcesDocument, UpdateSourceDocument } from '../generated/graphql';
import type { SignerKeyBitsFragment, SourceBitsFragment, SourcesQuery } from '../generated/graphql';
import { shorten } from '../lib/format';
import { AskDialog } from '../changes/AskDialog';
import { headOf } from '../lib/places';
import { Icon } from '../ui/Icons';
import { RowsCard } from '../ui/Rows';
import { Status } from '../ui/Status';
import { Ago, Copy, Empty, PageHead } from '../ui/parts';
import { CredentialDialog } from './CredentialDialog';
import { KeyDialog } from './KeyDialog';
import { SourceDialog } from './SourceDialog';

const pick = (data: SourcesQuery) => data.artifactSources;

type Asked =
  | { what: 'edit' | 'credential' | 'key' | 'switch'; row: SourceBitsFragment }
  | { what: 'add' }
  | { what: 'revoke'; row: SourceBitsFragment; key: SignerKeyBitsFragment };

/** The sources that the project may use: the platform's and its tenant's. */
export function SourcesPage() {
  const { can, project, staff } = useSession();
  const [asked, setAsked] = useState<Asked>();
  const list = useRows(
    SourcesDocument,
    useMemo(() => ({ tenantId: project?.tenantId ?? null }), [project]),
    pick,
  );
  const manages = (row: SourceBitsFragment) => can('source.manage') && (row.tenantId !== null || staff);
  const close = () => setAsked(undefined);
  const columns = [
    {
      head: 'Source',
      cell: (row: SourceBitsFragment) => (
        <span>
          <span className="strong">{row.name}</span>
          <span className="sub wrap-any">{row.location}</span>
        </span>
      ),
    },
    {
      head: 'Owner',
      cell: (row: SourceBitsFragment) => (
        <span>
          {row.tenantId === null ? 'The platform’s' : 'The tenant’s'}
          <span className="sub">{kindWords[row.kind]}</span>
        </span>
      ),
    },
    {
      head: 'State',
      cell: (row: SourceBitsFragment) => (
        <Status
          state={row.disabledAt === null ? 'ACTIVE' : 'RETIRED'}
          label={row.disabledAt === null ? 'On' : 'Switched off'}
        />
      ),
    },
    {
      head: 'Unsigned',
      cell: (row: SourceBitsFragment) => <span className="small">{policyWords[row.signaturePolicy]}</span>,
    },
    {
      head: 'Keys',
      cell: (row: SourceBitsFragment) => (
        <Keys row={row} onRevoke={manages(row) ? (key) => setAsked({ what: 'revoke', row, key }) : undefined} />
      ),
    },
    {
      head: 'Credential',
      cell: (row: SourceBitsFragment) =>
        row.credentialAt === null ? (
          <span className="faint">none</span>
        ) : (
          <span>
            {row.credentialUser}
            <span className="sub">
              set <Ago at={row.credentialAt} />
            </span>
          </span>
        ),
    },
    {
      head: '',
      right: true,
      cell: (row: SourceBitsFragment) =>
        manages(row) ? <More row={row} ask={(what) => setAsked({ what, row })} /> : null,
    },
  ];
  return (
    <div className="page">
      <PageHead
        {...headOf('/sources')}
        actions={
          can('source.manage') && (
            <Button leftSection={<Icon name="plus" size={14} />} onClick={() => setAsked({ what: 'add' })}>
              Add a source
            </Button>
          )
        }
      />
      <RowsCard<SourceBitsFragment>
        list={list}
        label="Sources"
        columns={columns}
        empty={
          <Empty icon="allocations" title="No sources">
            Nothing can be published until one is added.
          </Empty>
        }
      />
      {asked?.what === 'add' && (
        <SourceDialog source={undefined} platform={staff} onClose={close} onDone={list.refresh} />
      )}
      {asked?.what === 'edit' && (
        <SourceDialog source={asked.row} platform={staff} onClose={close} onDone={list.refresh} />
      )}
      {asked?.what === 'credential' && <CredentialDialog source={asked.row} onClose={close} onDone={list.refresh} />}
      {asked?.what === 'key' && <KeyDialog source={asked.row} onClose={close} onDone={list.refresh} />}
      {asked?.what === 'switch' && (
        <AskDialog
          title={asked.row.disabledAt === null ? `Switch ${asked.row.name} off` : `Switch ${asked.row.name} on`}
          act={asked.row.disabledAt === null ? 'Switch off' : 'Switch on'}
          danger={asked.row.disabledAt === null}
          send={(reason) =>
            tell(UpdateSourceDocument, {
              input: { sourceId: asked.row.id, disabled: asked.row.disabledAt === null, reason },
            })
          }
          onClose={close}
          onDone={list.refresh}
        >
          {asked.row.disabledAt === null
            ? 'Nothing new can be published from it, and what was published is no longer delivered.'
            : 'It is used again as before.'}
        </AskDialog>
      )}
      {asked?.what === 'revoke' && (
        <AskDialog
          title={`Revoke the key ${asked.key.name}`}
          act="Revoke"
          danger
          reasonNeeded
          send={(reason) => tell(RevokeKeyDocument, { keyId: asked.key.id, reason: reason ?? '' })}
          onClose={close}
          onDone={list.refresh}
        >
          What it has signed is untrusted from its next verification on, at the latest when it moves to its next stage.
        </AskDialog>
      )}
    </div>
  );
}

const kindWords: Readonly<Record<SourceBitsFragment['kind'], string>> = {
  OCI: 'OCI registry',
  HTTPS: 'HTTPS server',
  S3: 'S3 store',
};
const policyWords: Readonly<Record<SourceBitsFragment['signaturePolicy'], string>> = {
  REQUIRED: 'refused',
  QUARANTINE: 'quarantined',
  OPTIONAL: 'accepted',
};

function More({
  row,
  ask,
}: {
  row: SourceBitsFragment;
  ask: (what: 'edit' | 'credential' | 'key' | 'switch') => void;
}) {
  return (
    <Menu position="bottom-end" shadow="md">
      <Menu.Target>
        <Button size="compact-xs" variant="default" aria-label={`More for ${row.name}`}>
          <Icon name="more" size={14} />
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => ask('edit')}>Change</Menu.Item>
        <Menu.Item onClick={() => ask('credential')}>Set the credential</Menu.Item>
        <Menu.Item onClick={() => ask('key')}>Trust a key</Menu.Item>
        <Menu.Item {...(row.disabledAt === null ? { color: 'red' } : {})} onClick={() => ask('switch')}>
          {row.disabledAt === null ? 'Switch off' : 'Switch on'}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

function Keys({
  row,
  onRevoke,
}: {
  row: SourceBitsFragment;
  onRevoke: ((key: SignerKeyBitsFragment) => void) | undefined;
}) {
  if (row.keys.length === 0) return <span className="faint">none</span>;
  return (
    <ul style={{ listStyle: 'none', padding: 0 }} className="small">
      {row.keys.map((key) => (
        <li key={key.id}>
          <span
            className={key.revokedAt === null ? 'strong' : 'faint'}
            style={key.revokedAt === null ? {} : { textDecoration: 'line-through' }}
          >
            {key.name}
          </span>{' '}
          <Copy value={key.fingerprint} shown={shorten(key.fingerprint, 13, 4)} what="fingerprint" />
          {key.revokedAt !== null && <span className="faint"> revoked</span>}
          {key.revokedAt === null && key.validUntil !== null && (
            <span className="faint">
              {' '}
              until <Ago at={key.validUntil} />
            </span>
          )}
          {key.revokedAt === null && onRevoke !== undefined && (
            <>
              {' '}
              <button type="button" className="copy" style={{ color: 'var(--bad)' }} onClick={() => onRevoke(key)}>
                Revoke<span className="hidden-visually"> {key.name}</span>
              </button>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}
