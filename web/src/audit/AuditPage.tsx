// The audit log: who tried what, allowed or refused.
import { Button, Modal, SegmentedControl, TextInput } from '@mantine/core';
import { useMemo, useState } from 'react';
import type { SyntheticEvent } from 'react';
import { useRows } from '../api/pages';
import { useProjectId } from '../api/session';
import { AuditDocument } from '../generated/graphql';
import type { AuditFilterInput, AuditQuery } from '../generated/graphql';
import { fullTime, shorten, words } from '../lib/format';
import { headOf } from '../lib/places';
import { RowsCard } from '../ui/Rows';
import { Status } from '../ui/Status';
import { Ago, Copy, Empty, Fact, Json, PageHead } from '../ui/parts';
import { filterOf, noSearch } from './filter';
import type { Search } from './filter';

type Row = AuditQuery['searchAudit']['edges'][number]['node'];
const pick = (data: AuditQuery) => data.searchAudit;

/** The list, its filter, and one entry in full; it begins with the entries of a correlation id where one is given. */
export function AuditPage({ correlation }: { correlation?: string | undefined }) {
  const projectId = useProjectId();
  const [shown, setShown] = useState<Row>();
  const [search, setSearch] = useState(() =>
    correlation === undefined ? noSearch : { ...noSearch, who: 'all', correlation },
  );
  const filter = useMemo<AuditFilterInput>(() => filterOf(search, projectId), [search, projectId]);
  const list = useRows(
    AuditDocument,
    useMemo(() => ({ filter }), [filter]),
    pick,
  );
  return (
    <div className="page">
      <PageHead {...headOf('/audit')} />
      <RowsCard<Row>
        list={list}
        label="Audit entries"
        columns={columns(setShown)}
        empty={<Empty icon="audit" title="No entries found" />}
      >
        <Filters search={search} onSearch={setSearch} />
      </RowsCard>
      <Modal opened={shown !== undefined} onClose={() => setShown(undefined)} title={<b>{shown?.action}</b>} size="lg">
        {shown !== undefined && <Entry row={shown} />}
      </Modal>
    </div>
  );
}

function Filters({ search, onSearch }: { search: Search; onSearch: (search: Search) => void }) {
  const [draft, setDraft] = useState(search);
  const set = (change: Partial<Search>) => setDraft((before) => ({ ...before, ...change }));
  const quick = (change: Partial<Search>) => {
    set(change);
    onSearch({ ...search, ...change });
  };
  const send = (event: SyntheticEvent) => {
    event.preventDefault();
    onSearch(draft);
  };
  return (
    <form className="card-body stack-s" style={{ borderBottom: '1px solid var(--line)' }} onSubmit={send}>
      <div className="row">
        <SegmentedControl
          size="xs"
          aria-label="Whose attempts"
          value={draft.who}
          onChange={(who) => quick({ who })}
          data={[
            { value: 'all', label: 'Everyone' },
            { value: 'people', label: 'People and service accounts' },
          ]}
        />
        <SegmentedControl
          size="xs"
          aria-label="Outcome"
          value={draft.outcome}
          onChange={(outcome) => quick({ outcome })}
          data={[
            { value: 'any', label: 'All' },
            { value: 'allowed', label: 'Allowed' },
            { value: 'denied', label: 'Refused' },
            { value: 'glass', label: 'Break-glass' },
          ]}
        />
      </div>
      <div className="form-grid" style={{ gridTemplateColumns: 'repeat(auto-fit, minmax(150px, 1fr))' }}>
        <TextInput
          size="xs"
          label="Who"
          placeholder="usr_… or sa_…"
          maxLength={64}
          value={draft.actor}
          onChange={(event) => set({ actor: event.currentTarget.value })}
        />
        <TextInput
          size="xs"
          label="Object"
          placeholder="an id"
          maxLength={64}
          value={draft.object}
          onChange={(event) => set({ object: event.currentTarget.value })}
        />
        <TextInput
          size="xs"
          label="Permission key"
          placeholder="apps.instance.create"
          maxLength={80}
          value={draft.key}
          onChange={(event) => set({ key: event.currentTarget.value })}
        />
        <TextInput
          size="xs"
          label="Correlation id"
          maxLength={128}
          value={draft.correlation}
          onChange={(event) => set({ correlation: event.currentTarget.value })}
        />
        <TextInput
          size="xs"
          type="datetime-local"
          label="Not before"
          value={draft.from}
          onChange={(event) => set({ from: event.currentTarget.value })}
        />
        <TextInput
          size="xs"
          type="datetime-local"
          label="Before"
          value={draft.to}
          onChange={(event) => set({ to: event.currentTarget.value })}
        />
      </div>
      <div className="row" style={{ justifyContent: 'flex-end' }}>
        <Button
          size="xs"
          variant="default"
          onClick={() => {
            setDraft(noSearch);
            onSearch(noSearch);
          }}
        >
          Clear
        </Button>
        <Button size="xs" type="submit">
          Search
        </Button>
      </div>
    </form>
  );
}

function columns(show: (row: Row) => void) {
  return [
    {
      head: 'What',
      cell: (row: Row) => (
        <>
          <button type="button" className="copy strong" style={{ color: 'var(--accent)' }} onClick={() => show(row)}>
            {row.action}
          </button>
          {row.breakGlass && (
            <>
              {' '}
              <span className="tag" style={{ color: 'var(--bad)' }}>
                break-glass
              </span>
            </>
          )}
          <span className="sub mono">{row.permissionKey}</span>
        </>
      ),
    },
    {
      head: 'Outcome',
      cell: (row: Row) => (
        <span className="row">
          <Status
            state={row.allowed && row.code === '' ? 'SUCCEEDED' : 'FAILED'}
            label={row.code === '' ? (row.allowed ? 'Allowed' : 'Refused') : words(row.code)}
          />
          {row.repeats > 1 && <span className="small faint">× {row.repeats}</span>}
        </span>
      ),
    },
    {
      head: 'Who',
      cell: (row: Row) => (
        <span>
          {row.actor.name === '' ? row.actor.id : row.actor.name}
          <span className="sub">{words(row.actor.kind)}</span>
        </span>
      ),
    },
    {
      head: 'Object',
      cell: (row: Row) => (
        <span className="mono fixed" title={row.objectId}>
          {row.objectId === '' ? '—' : shorten(row.objectId, 10, 6)}
        </span>
      ),
    },
    { head: 'Reason', cell: (row: Row) => (row.reason === '' ? <span className="faint">—</span> : row.reason) },
    { head: 'When', cell: (row: Row) => <Ago at={row.createdAt} /> },
  ];
}

/** outcome returns the result of an attempt: allowed, allowed and then failed, or refused. */
function outcome(row: Row): string {
  if (!row.allowed) return `Refused: ${row.code}`;
  return row.code === '' ? 'Allowed' : `Allowed, and failed: ${row.code}`;
}

function Entry({ row }: { row: Row }) {
  return (
    <div className="stack">
      <dl className="facts">
        <Fact term="Who">
          {row.actor.name} <Copy value={row.actor.id} what="actor id" />
        </Fact>
        <Fact term="Key">
          <code>{row.permissionKey}</code>
        </Fact>
        <Fact term="Outcome">{outcome(row)}</Fact>
        <Fact term="Object">{row.objectId === '' ? '—' : <Copy value={row.objectId} what="object id" />}</Fact>
        <Fact term="Reason">{row.reason === '' ? '—' : row.reason}</Fact>
        <Fact term="From">{row.origin}</Fact>
        <Fact term="When">{fullTime(row.createdAt)}</Fact>
        <Fact term="Correlation id">
          <Copy value={row.correlationId} what="correlation id" />
        </Fact>
        {row.traceId !== '' && (
          <Fact term="Trace id">
            <Copy value={row.traceId} what="trace id" />
          </Fact>
        )}
      </dl>
      {row.before !== null && (
        <div className="stack-s">
          <h3>Before</h3>
          <Json value={row.before} label="Before" />
        </div>
      )}
      {row.after !== null && (
        <div className="stack-s">
          <h3>After</h3>
          <Json value={row.after} label="After" />
        </div>
      )}
    </div>
  );
}
