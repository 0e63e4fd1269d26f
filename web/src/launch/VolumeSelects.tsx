// Chooses the volumes that a workload uses, one for each slot of its app.
import { Select } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useRead } from '../api/hooks';
import { useSession } from '../api/session';
import { LaunchVolumesDocument } from '../generated/graphql';
import type { LaunchOptionsQuery } from '../generated/graphql';

type Slot = LaunchOptionsQuery['launchOptions']['manifest']['volumes'][number];

/** A field for each slot; an empty value means no volume. */
export function VolumeSelects({
  projectId,
  slots,
  chosen,
  onChange,
  errors,
}: {
  projectId: string;
  slots: readonly Slot[];
  chosen: Readonly<Record<string, string>>;
  onChange: (slot: string, volume: string) => void;
  errors: ReadonlyMap<string, string>;
}) {
  const { can } = useSession();
  const read = useRead(LaunchVolumesDocument, { projectId }, !can('volume.read'));
  const ready = (read.data?.volumes.edges ?? []).filter(({ node }) => node.status === 'READY');
  const data = ready.map(({ node }) => ({
    value: node.id,
    label: `${node.name}, ${String(node.sizeGiB)} GiB, ${node.storageClass.title}`,
  }));
  return (
    <>
      <div className="form-grid">
        {slots.map((slot) => (
          <Select
            key={slot.name}
            label={slot.title}
            description={[slot.description, slot.access === 'READ_ONLY' ? 'The app only reads it.' : '']
              .join(' ')
              .trim()}
            placeholder={slot.required ? 'Choose a volume' : 'None: these files are deleted with the members'}
            data={data}
            value={chosen[slot.name] ?? null}
            onChange={(next) => onChange(slot.name, next ?? '')}
            required={slot.required}
            clearable
            searchable
            data-slot={slot.name}
            error={errors.get(`volumes.${slot.name}`)}
          />
        ))}
      </div>
      {ready.length === 0 && read.data !== undefined && (
        <p className="soft">
          The project has no volume that is ready.{' '}
          <Link to="/volumes" style={{ textDecoration: 'underline' }}>
            Create one
          </Link>
        </p>
      )}
    </>
  );
}
