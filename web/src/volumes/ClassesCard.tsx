// The storage classes; operators create and change them here.
import { Button, Checkbox, Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { tell, useRead } from '../api/hooks';
import { ChangeDialog } from '../changes/ChangeDialog';
import { CreateStorageClassDocument, StorageClassesDocument, UpdateStorageClassDocument } from '../generated/graphql';
import type { StorageClassBitsFragment, StorageKind } from '../generated/graphql';
import { amount, noPrice } from '../lib/money';
import { ProblemNotice } from '../ui/Problem';
import { Card, DataTable, Empty, Loading } from '../ui/parts';
import { kinds, offered } from './volume';

/** The card with the list. */
export function ClassesCard({ mayManage }: { mayManage: boolean }) {
  const { data, problem, refresh } = useRead(StorageClassesDocument, {});
  const [open, setOpen] = useState<StorageClassBitsFragment | 'new'>();
  return (
    <Card
      title="Storage classes"
      pad={false}
      aside={
        mayManage ? (
          <Button size="compact-sm" variant="default" onClick={() => setOpen('new')}>
            Add a class
          </Button>
        ) : undefined
      }
    >
      {problem !== undefined && <ProblemNotice problem={problem} onRetry={refresh} />}
      {data === undefined && problem === undefined && <Loading />}
      {data?.storageClasses.length === 0 && (
        <Empty icon="nodes" title="No storage classes">
          An operator creates a class for each storage that nodes serve.
        </Empty>
      )}
      {data !== undefined && data.storageClasses.length > 0 && (
        <DataTable
          label="Storage classes"
          columns={columns(mayManage ? setOpen : undefined)}
          rows={data.storageClasses}
          keyOf={(row) => row.id}
        />
      )}
      {open !== undefined && (
        <ClassDialog of={open === 'new' ? undefined : open} onClose={() => setOpen(undefined)} onDone={refresh} />
      )}
    </Card>
  );
}

function columns(change: ((row: StorageClassBitsFragment) => void) | undefined) {
  return [
    {
      head: 'Name',
      cell: (row: StorageClassBitsFragment) => (
        <>
          <span className="strong">{row.title}</span>
          <span className="sub mono">{row.name}</span>
        </>
      ),
    },
    {
      head: 'Reach',
      cell: (row: StorageClassBitsFragment) => (
        <span>
          {kinds[row.kind]}
          <span className="sub">{row.description}</span>
        </span>
      ),
    },
    {
      head: 'Offered',
      cell: (row: StorageClassBitsFragment) => (
        <span>
          {row.disabled ? 'Takes no new volumes' : offered(row)}
          {row.offer !== null && !row.offer.sizeEnforced && (
            <span className="sub">sizes are measured, not enforced</span>
          )}
        </span>
      ),
    },
    { head: 'A GiB an hour', right: true, cell: (row: StorageClassBitsFragment) => <ListPrices of={row} /> },
    {
      head: '',
      right: true,
      cell: (row: StorageClassBitsFragment) =>
        change === undefined ? null : (
          <Button size="compact-xs" variant="default" onClick={() => change(row)}>
            Change<span className="hidden-visually"> {row.name}</span>
          </Button>
        ),
    },
  ];
}

/** What an hour of one GiB costs by the list, in each currency. */
function ListPrices({ of }: { of: StorageClassBitsFragment }) {
  if (of.hourlyListPrices.length === 0) return <span className="faint">{noPrice}</span>;
  return of.hourlyListPrices.map((price) => <div key={price.currency}>{amount(price.amount, price.currency)}</div>);
}

function ClassDialog({
  of,
  onClose,
  onDone,
}: {
  of: StorageClassBitsFragment | undefined;
  onClose: () => void;
  onDone: () => void;
}) {
  const [name, setName] = useState(of?.name ?? '');
  const [kind, setKind] = useState<StorageKind>(of?.kind ?? 'SHARED');
  const [title, setTitle] = useState(of?.title ?? '');
  const [description, setDescription] = useState(of?.description ?? '');
  const [disabled, setDisabled] = useState(of?.disabled ?? false);
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: of === undefined ? 'Add a storage class' : `Change ${of.name}`,
        act: of === undefined ? 'Add' : 'Save',
        fields: ['name', 'kind', 'title', 'description'],
        reasonNeeded: false,
        reasonKept: of !== undefined,
        intro: 'A class offers what node agents serve under its name, by their flag --storage.',
        send: ({ reason }) =>
          of === undefined
            ? tell(CreateStorageClassDocument, { input: { name, kind, title, description } })
            : tell(UpdateStorageClassDocument, {
                input: { storageClassId: of.id, title, description, disabled, reason },
              }),
        form: (errors) => (
          <div className="form-grid">
            <TextInput
              label="Name"
              description="What node agents call the storage"
              required
              maxLength={40}
              disabled={of !== undefined}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={errors.get('name')}
            />
            <Select
              label="Reach"
              description="It cannot be changed later"
              required
              disabled={of !== undefined}
              data={[
                { value: 'SHARED', label: 'Shared' },
                { value: 'LOCAL', label: 'Local' },
              ]}
              value={kind}
              onChange={(value) => setKind(value === 'LOCAL' ? 'LOCAL' : 'SHARED')}
              error={errors.get('kind')}
            />
            <TextInput
              className="wide"
              label="Title"
              required
              maxLength={80}
              value={title}
              onChange={(event) => setTitle(event.currentTarget.value)}
              error={errors.get('title')}
            />
            <TextInput
              className="wide"
              label="Description"
              maxLength={500}
              value={description}
              onChange={(event) => setDescription(event.currentTarget.value)}
              error={errors.get('description')}
            />
            {of !== undefined && (
              <Checkbox
                className="wide"
                label="Takes no new volumes"
                checked={disabled}
                onChange={(event) => setDisabled(event.currentTarget.checked)}
              />
            )}
          </div>
        ),
      }}
    />
  );
}
