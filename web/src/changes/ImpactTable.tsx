import type { ImpactBitsFragment } from '../generated/graphql';
import { plural } from '../lib/format';
import { Ago, DataTable } from '../ui/parts';

type Row = ImpactBitsFragment['projects'][number];

/** The affected projects; the owner's first. */
export function ImpactTable({ impact }: { impact: ImpactBitsFragment }) {
  return (
    <section className="stack-s" data-attached={impact.attachedTotal}>
      <h3>Affected projects</h3>
      <p className="small soft">
        {plural(impact.attachedTotal, 'other project')} attached, {plural(impact.membersTotal, 'member')},{' '}
        {plural(impact.openOperations, 'open operation')}
      </p>
      <div className="framed">
        <DataTable label="Affected projects" columns={columns} rows={impact.projects} keyOf={(row) => row.projectId} />
      </div>
    </section>
  );
}

const columns = [
  { head: 'Project', cell: (row: Row) => <span className="strong">{row.displayName}</span> },
  {
    head: 'Attached',
    cell: (row: Row) => (row.attachedAt === null ? <span className="faint">owner</span> : <Ago at={row.attachedAt} />),
  },
  { head: 'Who can use it', cell: (row: Row) => <span className="num">{row.subjects}</span> },
  { head: 'Actions in the last day', cell: (row: Row) => <span className="num">{row.recentActions}</span> },
];
