// Creating, growing and deleting a volume.
import { Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { tell, useRead, useSender } from '../api/hooks';
import { useProjectId } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import {
  CreateVolumeDocument,
  DeleteVolumeDocument,
  PlanCreateVolumeDocument,
  PlanResizeVolumeDocument,
  ResizeVolumeDocument,
  StorageClassesDocument,
} from '../generated/graphql';
import type { VolumeBitsFragment } from '../generated/graphql';
import { amount, noPrice } from '../lib/money';
import { kinds, offered, wrongSize, wrongVolume } from './volume';

interface Ends {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** The dialog of a new volume. */
export function CreateVolumeDialog({ onClose, onDone }: Ends) {
  const projectId = useProjectId();
  const { data } = useRead(StorageClassesDocument, {});
  const [name, setName] = useState('');
  const [chosen, setChosen] = useState('');
  const [sizeGiB, setSize] = useState('');
  const send = useSender(CreateVolumeDocument);
  const open = (data?.storageClasses ?? []).filter((each) => !each.disabled);
  const storageClass = open.length === 1 ? (open[0]?.name ?? '') : chosen;
  const picked = open.find((each) => each.name === storageClass);
  const wrong = wrongVolume({ name, storageClass, sizeGiB });
  const plan = useRead(
    PlanCreateVolumeDocument,
    { input: { projectId, name, storageClass, sizeGiB: Number(sizeGiB), idempotencyKey: 'plan' } },
    wrong.size > 0,
  );
  const cost = wrong.size > 0 ? undefined : plan.data?.planCreateVolume.hourlyAfter;
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: 'Create a volume',
        act: 'Create',
        fields: ['name', 'storageClass', 'sizeGiB'],
        reasonNeeded: false,
        reasonKept: false,
        wrong,
        intro: 'Its files are created when the first workload uses it, and stay until you delete it.',
        send: () => send({ projectId, name, storageClass, sizeGiB: Number(sizeGiB) }),
        form: (errors) => (
          <div className="form-grid">
            <TextInput
              className="wide"
              label="Name"
              required
              maxLength={40}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={errors.get('name')}
              data-autofocus
            />
            <Select
              className="wide"
              label="Storage class"
              description={picked === undefined ? undefined : `${kinds[picked.kind]}; ${offered(picked)}`}
              required
              data={open.map((each) => ({ value: each.name, label: `${each.title} (${each.name})` }))}
              value={storageClass === '' ? null : storageClass}
              onChange={(value) => setChosen(value ?? '')}
              error={errors.get('storageClass')}
            />
            <SizeInput value={sizeGiB} set={setSize} error={errors.get('sizeGiB')} cost={hourly(cost)} />
          </div>
        ),
      }}
    />
  );
}

/** The dialog that makes a volume larger. */
export function ResizeVolumeDialog({ volume, onClose, onDone }: Ends & { volume: VolumeBitsFragment }) {
  const [sizeGiB, setSize] = useState(String(volume.sizeGiB));
  const wrong = wrongSize(sizeGiB, volume.sizeGiB);
  const { data } = useRead(
    PlanResizeVolumeDocument,
    { input: { volumeId: volume.id, sizeGiB: Number(sizeGiB) } },
    wrong !== undefined,
  );
  const cost = wrong === undefined ? data?.planResizeVolume.hourlyAfter : undefined;
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Grow ${volume.name}`,
        act: 'Grow',
        fields: ['sizeGiB'],
        reasonNeeded: false,
        wrong: new Map(wrong === undefined ? [] : [['sizeGiB', wrong]]),
        intro: `It has ${volume.sizeGiB} GiB. Workloads that use it keep running. A volume cannot shrink again.`,
        send: ({ reason }) =>
          tell(ResizeVolumeDocument, { input: { volumeId: volume.id, sizeGiB: Number(sizeGiB), reason } }),
        form: (errors) => <SizeInput value={sizeGiB} set={setSize} error={errors.get('sizeGiB')} cost={hourly(cost)} />,
      }}
    />
  );
}

/** The dialog that deletes a volume. */
export function DeleteVolumeDialog({ volume, onClose, onDone }: Ends & { volume: VolumeBitsFragment }) {
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Delete ${volume.name}`,
        act: 'Delete with all files',
        danger: true,
        fields: [],
        reasonNeeded: true,
        intro: <Consequence volume={volume} />,
        send: ({ reason }) => tell(DeleteVolumeDocument, { volumeId: volume.id, reason: reason ?? '' }),
        form: () => null,
      }}
    />
  );
}

function Consequence({ volume }: { volume: VolumeBitsFragment }) {
  if (volume.users.length === 0)
    return <>Its files are deleted for good. The volume is deleted once a node has proved it.</>;
  return (
    <>
      <b>{volume.users.map((user) => user.instanceName).join(', ')}</b> still use it, so it cannot be deleted:
      decommission them first.
    </>
  );
}

/** What an hour of the volume costs, in words; undefined before that is known. */
function hourly(cost: { amount: string; currency: string } | null | undefined): string | undefined {
  if (cost === undefined) return undefined;
  return cost === null ? noPrice : `${amount(cost.amount, cost.currency)} an hour`;
}

interface Size {
  readonly value: string;
  readonly set: (value: string) => void;
  readonly error: string | undefined;
  readonly cost: string | undefined;
}

function SizeInput({ value, set, error, cost }: Size) {
  return (
    <TextInput
      label="Size, GiB"
      description={cost}
      inputMode="numeric"
      required
      maxLength={7}
      value={value}
      onChange={(event) => set(event.currentTarget.value)}
      error={error}
    />
  );
}
