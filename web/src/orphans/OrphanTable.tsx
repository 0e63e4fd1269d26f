// Orphans as rows: what is left where, since when, what it costs, and what is being done about it.
import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Problem } from '../api/errors';
import { tell } from '../api/hooks';
import { useSession } from '../api/session';
import { allocationName } from '../lib/capacity';
import { ageWord, moneyWord, ownerWord, untilWord } from '../changes/words';
import { RetryOrphanDocument } from '../generated/graphql';
import type { OrphanBitsFragment } from '../generated/graphql';
import { operationName } from '../lib/format';
import { Icon } from '../ui/Icons';
import { ProblemNotice } from '../ui/Problem';
import { Status } from '../ui/Status';
import { Ago, useNow } from '../ui/parts';
import type { Column } from '../ui/parts';

const kinds: Readonly<Record<OrphanBitsFragment['kind'], string>> = {
  NODE_RESIDUE: 'Left on a node',
  ALLOCATION: 'Capacity not released',
};

/** The columns of a table of orphans. */
export function orphanColumns(refresh: () => void, withWorkload: boolean): Column<OrphanBitsFragment>[] {
  const rows: Column<OrphanBitsFragment>[] = [
    {
      head: 'What is left',
      cell: (row) => (
        <span data-orphan={row.id}>
          <span className="strong">{kinds[row.kind]}</span>
          <span className="sub wrap-any said">{row.message}</span>
        </span>
      ),
    },
    { head: 'Where', cell: (row) => <Where orphan={row} /> },
    ...(withWorkload
      ? [
          {
            head: 'Workload',
            cell: (row: OrphanBitsFragment) => (
              <span>
                <Link to="/workloads/$id" params={{ id: row.instanceId }}>
                  {row.member === null ? 'the workload' : `${row.member.componentKey} ${row.member.index}`}
                </Link>
                {row.operation !== null && (
                  <span className="sub">
                    by{' '}
                    <Link to="/operations/$id" params={{ id: row.operation.id }}>
                      {operationName(row.operation.kind)}
                    </Link>
                  </span>
                )}
              </span>
            ),
          },
        ]
      : []),
    { head: 'Age', cell: (row) => <span className="num nowrap">{ageWord(row.ageSeconds)}</span> },
    {
      head: 'Cost',
      right: true,
      cell: (row) => (
        <span className="num nowrap">
          {moneyWord(row.costSoFar)}
          {row.hourlyCost !== null && <span className="sub">{moneyWord(row.hourlyCost)} per hour</span>}
        </span>
      ),
    },
    { head: 'State', cell: (row) => <OrphanState orphan={row} /> },
    { head: '', right: true, cell: (row) => <Retry orphan={row} refresh={refresh} /> },
  ];
  return rows;
}

function Where({ orphan }: { orphan: OrphanBitsFragment }) {
  if (orphan.node === null && orphan.allocation === null) return <span className="faint">—</span>;
  return (
    <span>
      {orphan.node !== null && (
        <span>
          {orphan.node.name} {orphan.node.status === 'OFFLINE' && <Status state="OFFLINE" bare />}
        </span>
      )}
      {orphan.allocation !== null && <span className="sub">{allocationName(orphan.allocation)}</span>}
    </span>
  );
}

function OrphanState({ orphan }: { orphan: OrphanBitsFragment }) {
  const now = useNow(1_000);
  if (orphan.resolvedAt !== null)
    return (
      <span>
        <Status state="REMOVED" bare label="Resolved" />
        <span className="sub">
          {orphan.resolution} <Ago at={orphan.resolvedAt} />
        </span>
      </span>
    );
  return (
    <span>
      <span className="num">next attempt {untilWord(orphan.nextTryAt, now)}</span>
      <span className="sub">
        {orphan.attempts === 0
          ? 'not tried yet'
          : `tried ${orphan.attempts} ${orphan.attempts === 1 ? 'time' : 'times'}`}
        , {ownerWord(orphan.owner)}
      </span>
      {orphan.lastError !== '' && <span className="sub wrap-any said">{orphan.lastError}</span>}
    </span>
  );
}

function Retry({ orphan, refresh }: { orphan: OrphanBitsFragment; refresh: () => void }) {
  const { can } = useSession();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  if (orphan.resolvedAt !== null || !can('operation.retry')) return null;
  const retry = async () => {
    setBusy(true);
    const answer = await tell(RetryOrphanDocument, { orphanId: orphan.id });
    setBusy(false);
    setProblem(answer.problem);
    refresh();
  };
  return (
    <span>
      <Button
        size="compact-xs"
        variant="default"
        loading={busy}
        leftSection={<Icon name="retry" size={13} />}
        onClick={() => void retry()}
      >
        Try now
      </Button>
      {problem !== undefined && <ProblemNotice problem={problem} />}
    </span>
  );
}
