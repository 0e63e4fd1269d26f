// The capacity that members of a component are to use, as a launch states it.
import { NumberInput, Select, TextInput } from '@mantine/core';
import type { CapacityShape } from '../generated/graphql';

/** The capacity for further members; a shape of 'NONE' states nothing. */
export interface Further {
  readonly shape: CapacityShape | 'NONE';
  readonly gpuCount: number | string;
  readonly sku: string;
  readonly region: string;
}

/** The value that states nothing. */
export const nowhere: Further = { shape: 'NONE', gpuCount: 1, sku: '', region: '' };

const shapes = [
  { value: 'NONE', label: 'Not stated' },
  { value: 'GPU_SLICE', label: 'GPU slice' },
  { value: 'BAREMETAL', label: 'Bare metal' },
];

/** The fields of one component. */
export function IntentFields({
  name,
  value,
  onChange,
  error,
}: {
  name: string;
  value: Further;
  onChange: (value: Further) => void;
  error: string | undefined;
}) {
  return (
    <div className="stack-s" role="group" aria-label={`Requested capacity of ${name}`}>
      <div className="form-grid">
        <Select
          label={name}
          description="One allocation for each member"
          data={shapes}
          value={value.shape}
          onChange={(next) => onChange({ ...value, shape: (next ?? 'NONE') as Further['shape'] })}
          allowDeselect={false}
          error={error}
        />
        {value.shape === 'GPU_SLICE' && (
          <NumberInput
            label="GPUs per slice"
            description="1 to 64"
            min={1}
            max={64}
            clampBehavior="none"
            allowDecimal={false}
            value={value.gpuCount}
            onChange={(gpuCount) => onChange({ ...value, gpuCount })}
          />
        )}
      </div>
      {value.shape !== 'NONE' && (
        <div className="form-grid">
          <TextInput
            label="SKU"
            placeholder="Any"
            maxLength={100}
            value={value.sku}
            onChange={(event) => onChange({ ...value, sku: event.currentTarget.value })}
          />
          <TextInput
            label="Region"
            placeholder="Any"
            maxLength={100}
            value={value.region}
            onChange={(event) => onChange({ ...value, region: event.currentTarget.value })}
          />
        </div>
      )}
    </div>
  );
}
