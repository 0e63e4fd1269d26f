// Fields that several changes share: the deadline, force, and the place of new members.
import { Checkbox, NumberInput, Radio, SegmentedControl, Select, TextInput } from '@mantine/core';
import { useRead } from '../api/hooks';
import { useProjectId, useSession } from '../api/session';
import { allocationName, shapeName } from '../lib/capacity';
import { FreeAllocationsDocument } from '../generated/graphql';
import type { CapacityIntentInput, CapacityShape } from '../generated/graphql';
import { plural } from '../lib/format';
import { ProblemNotice } from '../ui/Problem';
import { Loading } from '../ui/parts';

type Errors = ReadonlyMap<string, string>;

/** The deadlines to choose from, in seconds. */
const deadlines = [
  { value: '300', label: '5 minutes' },
  { value: '900', label: '15 minutes' },
  { value: '1800', label: '30 minutes' },
  { value: '3600', label: '1 hour' },
  { value: '14400', label: '4 hours' },
  { value: '86400', label: '1 day' },
];

/** A choice of deadline. */
export function DeadlineField({
  value,
  onChange,
  errors,
  help = 'After this it counts as failed',
}: {
  value: string;
  onChange: (value: string) => void;
  errors: Errors;
  help?: string;
}) {
  return (
    <Select
      label="Deadline"
      description={help}
      data={deadlines}
      value={value}
      onChange={(next) => onChange(next ?? value)}
      allowDeselect={false}
      error={errors.get('deadlineSeconds')}
    />
  );
}

/** How a change that can lose work may end. */
export interface Ending {
  readonly force: boolean;
  readonly onDeadline: 'FAIL' | 'FORCE';
  readonly deadline: string;
}

/** Returns the fields of an input that say how the change may end; plan and change get the same fields. */
export function endOf(value: Ending) {
  return { force: value.force, onDeadline: value.onDeadline, deadlineSeconds: Number(value.deadline) };
}

/** Deadline, what happens at it, and whether to wait at all. */
export function EndingFields({
  value,
  onChange,
  errors,
  forceHelp,
}: {
  value: Ending;
  onChange: (value: Ending) => void;
  errors: Errors;
  forceHelp: string;
}) {
  return (
    <div className="stack">
      <div className="form-grid">
        <DeadlineField
          value={value.deadline}
          onChange={(deadline) => onChange({ ...value, deadline })}
          errors={errors}
          help={value.force ? 'Counted from now' : 'How long to wait for running work'}
        />
        <Select
          label="When the deadline passes"
          description={value.onDeadline === 'FORCE' ? 'Work may be lost' : 'The failure names what it waited for'}
          allowDeselect={false}
          disabled={value.force}
          error={errors.get('onDeadline')}
          data={[
            { value: 'FAIL', label: 'It fails' },
            { value: 'FORCE', label: 'It continues by force' },
          ]}
          value={value.onDeadline}
          onChange={(next) => onChange({ ...value, onDeadline: next === 'FORCE' ? 'FORCE' : 'FAIL' })}
        />
      </div>
      <Checkbox
        label="Do it now, by force"
        description={forceHelp}
        checked={value.force}
        onChange={(event) => onChange({ ...value, force: event.currentTarget.checked })}
        error={errors.get('force')}
      />
    </div>
  );
}

/** The place of new members: chosen allocations, the same as before, or capacity that is requested. */
export interface Place {
  readonly mode: 'same' | 'existing' | 'new';
  readonly allocationIds: readonly string[];
  readonly shape: CapacityShape;
  readonly gpuCount: number | string;
  readonly sku: string;
  readonly region: string;
}

/** The initial place. */
export const firstPlace: Place = {
  mode: 'existing',
  allocationIds: [],
  shape: 'GPU_SLICE',
  gpuCount: 1,
  sku: '',
  region: '',
};

/** Returns the capacity that a place requests; null when the capacity exists already. */
export function intentOf(place: Place): CapacityIntentInput | null {
  if (place.mode !== 'new') return null;
  const text = (value: string) => (value.trim() === '' ? null : value.trim());
  return {
    shape: place.shape,
    gpuCount: place.shape === 'GPU_SLICE' ? Number(place.gpuCount) : null,
    sku: text(place.sku),
    region: text(place.region),
  };
}

/** Returns the error that the form itself finds in a place. */
export function placeProblem(place: Place): string | undefined {
  if (place.mode === 'existing' && place.allocationIds.length === 0) return 'Choose at least one allocation.';
  if (
    place.mode === 'new' &&
    place.shape === 'GPU_SLICE' &&
    !(Number(place.gpuCount) >= 1 && Number(place.gpuCount) <= 64)
  )
    return 'A slice has 1 to 64 GPUs.';
  return undefined;
}

/** The choice of a place. `same` offers a known place, such as the old member's; `single` allows one allocation. */
export function PlaceFields({
  value,
  onChange,
  errors,
  instanceId,
  same,
  sameName = 'The same place',
  single = false,
}: {
  value: Place;
  onChange: (value: Place) => void;
  errors: Errors;
  instanceId: string;
  same?: string;
  sameName?: string;
  single?: boolean;
}) {
  const { can } = useSession();
  const modes = [
    ...(same === undefined ? [] : [{ value: 'same', label: sameName }]),
    { value: 'existing', label: 'Capacity you have' },
    ...(can('allocation.create') ? [{ value: 'new', label: 'New capacity' }] : []),
  ];
  const error = errors.get('allocationIds') ?? errors.get('allocationId') ?? errors.get('intent');
  return (
    <div className="stack-s" role="group" aria-label="Where">
      <SegmentedControl
        fullWidth
        aria-label="Where"
        data={modes}
        value={value.mode}
        onChange={(mode) => onChange({ ...value, mode: mode as Place['mode'] })}
      />
      {value.mode === 'same' && <p className="small soft">{same}</p>}
      {value.mode === 'existing' && (
        <ExistingPlaces value={value} onChange={onChange} instanceId={instanceId} single={single} />
      )}
      {value.mode === 'new' && <NewPlace value={value} onChange={onChange} errors={errors} single={single} />}
      {error !== undefined && (
        <p className="small" role="alert" style={{ color: 'var(--bad)' }}>
          {error}
        </p>
      )}
    </div>
  );
}

function ExistingPlaces({
  value,
  onChange,
  instanceId,
  single,
}: {
  value: Place;
  onChange: (value: Place) => void;
  instanceId: string;
  single: boolean;
}) {
  const projectId = useProjectId();
  const { data, problem, refresh } = useRead(FreeAllocationsDocument, { projectId });
  if (data === undefined)
    return problem === undefined ? <Loading lines={2} /> : <ProblemNotice problem={problem} onRetry={refresh} />;
  const rows = data.allocations.edges
    .map((edge) => edge.node)
    .filter((each) => each.instance === null || each.instance.id === instanceId);
  if (rows.length === 0) return <p className="soft small">The project has no allocation that is ready and free.</p>;
  const pick = (id: string) => {
    const without = value.allocationIds.filter((each) => each !== id);
    onChange({
      ...value,
      allocationIds: single ? [id] : without.length === value.allocationIds.length ? [...without, id] : without,
    });
  };
  return (
    <div className="picks">
      {rows.map((row) => {
        const facts = [
          shapeName(row.shape),
          plural(row.gpuCount, 'GPU'),
          row.node?.name,
          row.instance === null ? 'free' : 'used by this workload',
        ]
          .filter(Boolean)
          .join(' · ');
        const shared = {
          label: allocationName(row),
          description: facts,
          checked: value.allocationIds.includes(row.id),
          onChange: () => pick(row.id),
          'data-allocation': row.id,
        };
        return single ? <Radio key={row.id} {...shared} /> : <Checkbox key={row.id} {...shared} />;
      })}
    </div>
  );
}

function NewPlace({
  value,
  onChange,
  errors,
  single,
}: {
  value: Place;
  onChange: (value: Place) => void;
  errors: Errors;
  single: boolean;
}) {
  return (
    <div className="stack-s">
      <p className="small soft">
        {single ? 'One allocation is' : 'One allocation for each member is'} requested with the change, and released if
        the change fails.
      </p>
      <SegmentedControl
        fullWidth
        aria-label="Shape"
        value={value.shape}
        onChange={(shape) => onChange({ ...value, shape: shape })}
        data={[
          { value: 'GPU_SLICE', label: 'GPU slice' },
          { value: 'BAREMETAL', label: 'Bare metal' },
        ]}
      />
      <div className="form-grid thirds">
        {value.shape === 'GPU_SLICE' && (
          <NumberInput
            label="GPUs per slice"
            min={1}
            max={64}
            allowDecimal={false}
            value={value.gpuCount}
            onChange={(gpuCount) => onChange({ ...value, gpuCount })}
            error={errors.get('intent.gpuCount')}
          />
        )}
        <TextInput
          label="SKU"
          placeholder="Any"
          maxLength={100}
          value={value.sku}
          onChange={(event) => onChange({ ...value, sku: event.currentTarget.value })}
          error={errors.get('intent.sku')}
        />
        <TextInput
          label="Region"
          placeholder="Any"
          maxLength={100}
          value={value.region}
          onChange={(event) => onChange({ ...value, region: event.currentTarget.value })}
          error={errors.get('intent.region')}
        />
      </div>
    </div>
  );
}
