// Requesting capacity.
import { Button, Modal, NumberInput, SegmentedControl, Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { SyntheticEvent } from 'react';
import { placeReasons } from '../api/errors';
import { useSubmission } from '../api/hooks';
import { useProjectId } from '../api/session';
import { RequestAllocationDocument } from '../generated/graphql';
import type { CapacityShape, IsolationClass } from '../generated/graphql';
import { ProblemNotice } from '../ui/Problem';

/** What the form holds; an empty text means no preference. */
interface Wish {
  shape: CapacityShape;
  count: number | string;
  gpuCount: number | string;
  name: string;
  sku: string;
  region: string;
  isolationClass: IsolationClass | null;
}

const start: Wish = { shape: 'BAREMETAL', count: 1, gpuCount: 1, name: '', sku: '', region: '', isolationClass: null };
const fields: ReadonlySet<string> = new Set(['shape', 'count', 'gpuCount', 'name', 'sku', 'region', 'isolationClass']);

/** The dialog; `onDone` is called when the capacity was allocated. */
export function RequestDialog({
  opened,
  onClose,
  onDone,
}: {
  opened: boolean;
  onClose: () => void;
  onDone: () => void;
}) {
  return (
    <Modal opened={opened} onClose={onClose} title={<b>Request capacity</b>}>
      <RequestForm onClose={onClose} onDone={onDone} />
    </Modal>
  );
}

function RequestForm({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const projectId = useProjectId();
  const [wish, setWish] = useState(start);
  const { submit, problem, busy } = useSubmission(RequestAllocationDocument);
  const placed = placeReasons(problem?.reasons ?? [], (path) => fields.has(path));
  const set = (change: Partial<Wish>) => setWish((before) => ({ ...before, ...change }));
  const slice = wish.shape === 'GPU_SLICE';
  const send = async (event: SyntheticEvent) => {
    event.preventDefault();
    const answer = await submit({
      projectId,
      shape: wish.shape,
      count: Number(wish.count),
      gpuCount: slice ? Number(wish.gpuCount) : null,
      name: optional(wish.name),
      sku: optional(wish.sku),
      region: optional(wish.region),
      isolationClass: wish.isolationClass,
    });
    if (answer === undefined) return;
    onDone();
    onClose();
  };
  return (
    <form className="stack" onSubmit={(event) => void send(event)}>
      <SegmentedControl
        fullWidth
        aria-label="Shape"
        value={wish.shape}
        onChange={(shape) => set({ shape: shape })}
        data={[
          { value: 'BAREMETAL', label: 'Bare metal: whole nodes' },
          { value: 'GPU_SLICE', label: 'GPU slice' },
        ]}
      />
      <div className="form-grid">
        <NumberInput
          label="How many"
          description="You get all of them or none"
          min={1}
          max={64}
          allowDecimal={false}
          required
          value={wish.count}
          onChange={(count) => set({ count })}
          error={placed.fields.get('count')}
          data-autofocus
        />
        {slice && (
          <NumberInput
            label="GPUs per slice"
            description="1 to 64"
            min={1}
            max={64}
            allowDecimal={false}
            required
            value={wish.gpuCount}
            onChange={(gpuCount) => set({ gpuCount })}
            error={placed.fields.get('gpuCount')}
          />
        )}
        <TextInput
          className="wide"
          label="Name"
          description="A number is added when you request several"
          maxLength={100}
          value={wish.name}
          onChange={(event) => set({ name: event.currentTarget.value })}
          error={placed.fields.get('name')}
        />
        <TextInput
          label="SKU"
          placeholder="Any"
          maxLength={100}
          value={wish.sku}
          onChange={(event) => set({ sku: event.currentTarget.value })}
          error={placed.fields.get('sku')}
        />
        <TextInput
          label="Region"
          placeholder="Any"
          maxLength={100}
          value={wish.region}
          onChange={(event) => set({ region: event.currentTarget.value })}
          error={placed.fields.get('region')}
        />
        <Select
          className="wide"
          label="Isolation"
          description="The weakest that members may have"
          placeholder="Any"
          clearable
          data={classes}
          value={wish.isolationClass}
          onChange={(value) => set({ isolationClass: classes.find((one) => one.value === value)?.value ?? null })}
          error={placed.fields.get('isolationClass')}
        />
      </div>
      {problem !== undefined && <ProblemNotice problem={problem} reasons={placed.rest} />}
      <div className="row" style={{ justifyContent: 'flex-end' }}>
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button type="submit" loading={busy}>
          Request
        </Button>
      </div>
    </form>
  );
}

const classes: { value: IsolationClass; label: string }[] = [
  { value: 'CONTAINER', label: 'Container' },
  { value: 'SANDBOX', label: 'Sandbox' },
  { value: 'VM', label: 'Virtual machine' },
  { value: 'WHOLE_NODE', label: 'Whole node' },
];

function optional(text: string): string | null {
  return text.trim() === '' ? null : text.trim();
}
