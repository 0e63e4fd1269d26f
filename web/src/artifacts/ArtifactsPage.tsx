// The published artifacts: each by digest, with its signature, its stage, and whether it is in quarantine.
import { Button, SegmentedControl, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { useSettled } from '../api/hooks';
import { useRows } from '../api/pages';
import { useSession } from '../api/session';
import { ArtifactsDocument } from '../generated/graphql';
import type { ArtifactBitsFragment, ArtifactsQuery } from '../generated/graphql';
import { bytes, shorten, words } from '../lib/format';
import { headOf } from '../lib/places';
import { Icon } from '../ui/Icons';
import { RowsCard } from '../ui/Rows';
import { Status } from '../ui/Status';
import { Ago, Empty, PageHead } from '../ui/parts';
import { ArtifactDrawer } from './ArtifactDrawer';
import { PublishArtifactDialog } from './PublishArtifactDialog';
import { kindName, signatureState } from './signature';

const pick = (data: ArtifactsQuery) => data.artifacts;

/** The list; `id` opens one of them beside it. */
export function ArtifactsPage({ id }: { id: string | undefined }) {
  const { can } = useSession();
  const navigate = useNavigate();
  const [typed, setTyped] = useState('');
  const [which, setWhich] = useState('all');
  const [asking, setAsking] = useState(false);
  const search = useSettled(typed.trim());
  const variables = useMemo(
    () => ({
      search: search === '' ? null : search.slice(0, 100),
      stages: null,
      quarantined: which === 'all' ? null : which === 'quarantined',
    }),
    [search, which],
  );
  const list = useRows(ArtifactsDocument, variables, pick);
  const open = (next: string | undefined) =>
    void navigate({ to: '/artifacts', search: next === undefined ? {} : { id: next } });
  return (
    <div className="page">
      <PageHead
        {...headOf('/artifacts')}
        actions={
          can('artifact.publish') && (
            <Button leftSection={<Icon name="plus" size={14} />} onClick={() => setAsking(true)}>
              Publish an artifact
            </Button>
          )
        }
      />
      <RowsCard<ArtifactBitsFragment>
        list={list}
        label="Artifacts"
        columns={columns(open)}
        empty={
          <Empty icon="allocations" title="No artifacts">
            {search === '' ? 'Publishers add artifacts from the registered sources.' : 'Nothing matches.'}
          </Empty>
        }
      >
        <div className="card-body row" style={{ borderBottom: '1px solid var(--line)' }}>
          <TextInput
            aria-label="Search artifacts"
            placeholder="Name or address"
            type="search"
            size="xs"
            w={260}
            maxLength={100}
            leftSection={<Icon name="search" size={14} />}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
          />
          <SegmentedControl
            size="xs"
            aria-label="Which artifacts"
            value={which}
            onChange={setWhich}
            data={[
              { value: 'all', label: 'All' },
              { value: 'free', label: 'Not in quarantine' },
              { value: 'quarantined', label: 'In quarantine' },
            ]}
          />
        </div>
      </RowsCard>
      <ArtifactDrawer id={id} onClose={() => open(undefined)} onChanged={list.refresh} />
      {asking && (
        <PublishArtifactDialog
          onClose={() => setAsking(false)}
          onDone={(made) => {
            setAsking(false);
            list.refresh();
            open(made);
          }}
        />
      )}
    </div>
  );
}

function columns(open: (id: string) => void) {
  return [
    {
      head: 'Artifact',
      cell: (row: ArtifactBitsFragment) => (
        <span>
          <button type="button" className="copy strong" style={{ color: 'var(--accent)' }} onClick={() => open(row.id)}>
            {row.name}
          </button>
          <span className="sub wrap-any">{row.ref.split('@')[0]}</span>
        </span>
      ),
    },
    {
      head: 'Kind',
      cell: (row: ArtifactBitsFragment) => (
        <span>
          {kindName(row.kind)}
          <span className="sub">{row.platforms.join(', ')}</span>
        </span>
      ),
    },
    {
      head: 'Stage',
      cell: (row: ArtifactBitsFragment) => (
        <span className="row">
          <Status state={row.stage} />
          {row.quarantinedAt !== null && <Status state="FAILED" label="Quarantine" title={row.quarantineReason} />}
        </span>
      ),
    },
    {
      head: 'Signature',
      cell: (row: ArtifactBitsFragment) => (
        <Status state={signatureState(row.signature)} bare label={words(row.signature)} />
      ),
    },
    {
      head: 'Size',
      right: true,
      cell: (row: ArtifactBitsFragment) => <span className="num">{bytes(row.sizeBytes)}</span>,
    },
    {
      head: 'Digest',
      cell: (row: ArtifactBitsFragment) => (
        <span className="mono fixed" title={row.digest}>
          {shorten(row.digest, 15, 4)}
        </span>
      ),
    },
    { head: 'Published', cell: (row: ArtifactBitsFragment) => <Ago at={row.createdAt} /> },
  ];
}
