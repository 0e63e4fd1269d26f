// Who tried what, allowed or refused.
import { Modal, SegmentedControl } from '@mantine/core';
import { useMemo, useState } from 'react';
import { useRows } from '../api/pages';
import { useProjectId } from '../api/session';
import { AuditDocument } from '../generated/graphql';
import type { AuditQuery } from '../generated/graphql';
import { fullTime, shorten, words } from '../lib/format';
import { RowsCard } from '../ui/Rows';
import { Status } from '../ui/Status';
import { Ago, Copy, Empty, Fact, Json, PageHead } from '../ui/parts';

type Row = AuditQuery['auditEntries']['edges'][number]['node'];
const pick = (data: AuditQuery) => data.auditEntries;

/** The actors that act on their own account; operations and nodes act for somebody. */
const people = ['USER', 'SERVICE_ACCOUNT', 'ANONYMOUS'];

/** The list, and one entry in full. */
export function AuditPage() {
  const projectId = useProjectId();
  const [shown, setShown] = useState<Row>();
  const [who, setWho] = useState('people');
  const list = useRows(AuditDocument, useMemo(() => ({ projectId, actorKinds: who === 'all' ? null : people }), [projectId, who]), pick);
  return (
    <div className="page">
      <PageHead title="Audit" lede="Every privileged attempt in this project, allowed or refused, newest first." />
      <RowsCard<Row> list={list} label="Audit entries" columns={columns(setShown)} empty={<Empty icon="audit" title="Nothing recorded yet" />}>
        <div className="card-head">
          <SegmentedControl size="xs" aria-label="Whose attempts" value={who} onChange={setWho} data={[{ value: 'all', label: 'Everybody' }, { value: 'people', label: 'People and service accounts' }]} />
        </div>
      </RowsCard>
      <Modal opened={shown !== undefined} onClose={() => setShown(undefined)} title={<b>{shown?.action}</b>} size="lg">{shown !== undefined && <Entry row={shown} />}</Modal>
    </div>
  );
}

function columns(show: (row: Row) => void) {
  return [
    { head: 'What', cell: (row: Row) => <><button type="button" className="copy strong" style={{ color: 'var(--accent)' }} onClick={() => show(row)}>{row.action}</button><span className="sub mono">{row.permissionKey}</span></> },
    { head: 'Outcome', cell: (row: Row) => <span className="row"><Status state={row.allowed ? 'SUCCEEDED' : 'FAILED'} label={row.allowed ? 'Allowed' : words(row.code === '' ? 'refused' : row.code)} />{row.repeats > 1 && <span className="small faint">× {row.repeats}</span>}</span> },
    { head: 'Who', cell: (row: Row) => <span>{row.actor.name === '' ? row.actor.id : row.actor.name}<span className="sub">{words(row.actor.kind)}</span></span> },
    { head: 'Object', cell: (row: Row) => <span className="mono fixed" title={row.objectId}>{row.objectId === '' ? '—' : shorten(row.objectId, 10, 6)}</span> },
    { head: 'Reason', cell: (row: Row) => row.reason === '' ? <span className="faint">—</span> : row.reason },
    { head: 'When', cell: (row: Row) => <Ago at={row.createdAt} /> },
  ];
}

function Entry({ row }: { row: Row }) {
  return (
    <div className="stack">
      <dl className="facts">
        <Fact term="Who">{row.actor.name} <Copy value={row.actor.id} what="actor id" /></Fact>
        <Fact term="Key"><code>{row.permissionKey}</code></Fact>
        <Fact term="Outcome">{row.allowed ? 'Allowed' : `Refused: ${row.code}`}</Fact>
        <Fact term="Object">{row.objectId === '' ? '—' : <Copy value={row.objectId} what="object id" />}</Fact>
        <Fact term="Reason">{row.reason === '' ? '—' : row.reason}</Fact>
        <Fact term="From">{row.origin}</Fact>
        <Fact term="When">{fullTime(row.createdAt)}</Fact>
        <Fact term="Correlation id"><Copy value={row.correlationId} what="correlation id" /></Fact>
      </dl>
      {row.before !== null && <div className="stack-s"><h3>Before</h3><Json value={row.before} label="Before" /></div>}
      {row.after !== null && <div className="stack-s"><h3>After</h3><Json value={row.after} label="After" /></div>}
    </div>
  );
}
