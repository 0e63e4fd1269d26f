// What was created under an emergency role.
import { Modal } from '@mantine/core';
import { useRead } from '../api/hooks';
import { MadeUnderDocument } from '../generated/graphql';
import type { BindingBitsFragment, MadeUnderQuery } from '../generated/graphql';
import { words } from '../lib/format';
import { ProblemNotice } from '../ui/Problem';
import { Status } from '../ui/Status';
import { Ago, Copy, DataTable, Empty } from '../ui/parts';

type Derived = MadeUnderQuery['madeUnder'][number];

const columns = [
  {
    head: 'What',
    cell: (row: Derived) => (
      <span>
        <span className="strong">{words(row.kind)}</span>
        <span className="sub">
          <Copy value={row.id} what="id" />
        </span>
      </span>
    ),
  },
  {
    head: 'Name',
    cell: (row: Derived) =>
      row.name === '' ? <span className="faint">—</span> : <span className="wrap-any">{row.name}</span>,
  },
  {
    head: 'On',
    cell: (row: Derived) => (row.projectId === null ? 'the whole tenant' : <Copy value={row.projectId} what="id" />),
  },
  {
    head: 'State',
    cell: (row: Derived) => (
      <Status state={row.ended ? 'REMOVED' : 'ACTIVE'} bare label={row.ended ? 'Ended' : 'Active'} />
    ),
  },
  { head: 'Created', cell: (row: Derived) => <Ago at={row.createdAt} /> },
];

/** The dialog: accounts, keys, webhooks and roles that end with the role. */
export function MadeUnderDialog({
  binding,
  who,
  onClose,
}: {
  binding: BindingBitsFragment;
  who: string;
  onClose: () => void;
}) {
  const { data, problem } = useRead(MadeUnderDocument, { bindingId: binding.id });
  return (
    <Modal opened onClose={onClose} title={<b>Created under break-glass by {who}</b>} size="xl">
      <div className="stack">
        <p className="small faint">
          What could not have been created without the role {words(binding.role)}. It ends when the role ends.
        </p>
        {problem !== undefined && <ProblemNotice problem={problem} />}
        {data !== undefined &&
          (data.madeUnder.length === 0 ? (
            <Empty icon="audit" title="Nothing was created under this role" />
          ) : (
            <div className="framed">
              <DataTable
                label="Created under break-glass"
                columns={columns}
                rows={data.madeUnder}
                keyOf={(row) => row.id}
              />
            </div>
          ))}
      </div>
    </Modal>
  );
}
