// The changes of a whole workload, each as a dialog.
import { Checkbox, NumberInput, Select } from '@mantine/core';
import { useState } from 'react';
import { ask, useSender } from '../api/hooks';
import {
  AddMembersDocument,
  DecommissionInstanceDocument,
  PlanAddMembersDocument,
  PlanDecommissionInstanceDocument,
  PlanRollbackInstanceDocument,
  RollbackInstanceDocument,
} from '../generated/graphql';
import type { GenerationsQuery } from '../generated/graphql';
import { Ago, Json } from '../ui/parts';
import { ChangeDialog } from '../changes/ChangeDialog';
import { DeadlineField, EndingFields, PlaceFields, endOf, firstPlace, intentOf, placeProblem } from './fields';
import type { Ending } from './fields';
import { needsReason } from '../changes/flow';
import type { Workload } from './workload';

/** The properties of every dialog of a workload. */
export interface InstanceDialogProps {
  readonly workload: Workload;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Adding members to a component. */
export function AddDialog({ workload, onClose, onDone }: InstanceDialogProps) {
  const components = workload.manifest.components;
  const room = (key: string) =>
    Math.max(
      0,
      (components.find((each) => each.key === key)?.max ?? 0) -
        (workload.roles.find((role) => role.componentKey === key)?.desired ?? 0),
    );
  const [componentKey, setComponentKey] = useState(
    () => components.find((each) => room(each.key) > 0)?.key ?? components[0]?.key ?? '',
  );
  const [count, setCount] = useState<number | string>(1);
  const [place, setPlace] = useState(firstPlace);
  const [keepFailed, setKeepFailed] = useState(false);
  const [deadline, setDeadline] = useState('900');
  const send = useSender(AddMembersDocument);
  const what = {
    instanceId: workload.id,
    componentKey,
    count: Number(count),
    allocationIds: place.mode === 'existing' ? [...place.allocationIds] : null,
    intent: intentOf(place),
  };
  const most = Math.min(64, room(componentKey));
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Add members to ${workload.name}`,
        act: 'Add members',
        fields: ['componentKey', 'count', 'allocationIds', 'intent', 'keepFailed', 'deadlineSeconds'],
        reasonNeeded: false,
        intro:
          'They join while the workload keeps running. If they cannot join, everything that was created for them is removed again.',
        wrong: addProblems(count, most, placeProblem(place)),
        plan: () =>
          ask(PlanAddMembersDocument, { input: { ...what, keepFailed, deadlineSeconds: Number(deadline) } }).then(
            (answer) => (answer.problem === undefined ? { data: answer.data.planAddMembers } : answer),
          ),
        send: (given) => send({ ...what, keepFailed, deadlineSeconds: Number(deadline), ...given }),
        form: (errors) => (
          <div className="stack">
            <div className="form-grid">
              <Select
                label="Component"
                description={`It can have ${room(componentKey)} more`}
                data={components.map((each) => ({ value: each.key, label: each.displayName }))}
                value={componentKey}
                onChange={(next) => setComponentKey(next ?? componentKey)}
                allowDeselect={false}
                error={errors.get('componentKey')}
              />
              <NumberInput
                label="How many"
                description={most > 0 ? `1 to ${most}` : 'It cannot have more'}
                min={1}
                max={Math.max(1, most)}
                clampBehavior="none"
                allowDecimal={false}
                value={count}
                onChange={setCount}
                error={errors.get('count')}
                data-autofocus
              />
            </div>
            <PlaceFields value={place} onChange={setPlace} errors={errors} instanceId={workload.id} />
            <Checkbox
              label="Keep members that could not join"
              description="They stay as failed members, to be recovered or replaced, instead of all being removed again."
              checked={keepFailed}
              onChange={(event) => setKeepFailed(event.currentTarget.checked)}
              error={errors.get('keepFailed')}
            />
            <DeadlineField value={deadline} onChange={setDeadline} errors={errors} />
          </div>
        ),
      }}
    />
  );
}

/** Returns the errors that the form finds in an addition. */
export function addProblems(count: number | string, most: number, place: string | undefined): Map<string, string> {
  const found = new Map<string, string>();
  const number = Number(count);
  if (most === 0) found.set('count', 'The component already has its maximum number of members.');
  else if (count === '' || !Number.isInteger(number) || number < 1 || number > most)
    found.set('count', most === 1 ? 'Must be 1.' : `Must be 1 to ${most}.`);
  if (place !== undefined) found.set('allocationIds', place);
  return found;
}

type Generation = GenerationsQuery['instance']['generations'][number];

/** Rolling back to an earlier version and config. */
export function RollbackDialog({
  workload,
  generations,
  onClose,
  onDone,
}: InstanceDialogProps & { generations: readonly Generation[] }) {
  const [number, setNumber] = useState<number | undefined>(
    () => generations.find((each) => each.number < workload.generation)?.number,
  );
  const [deadline, setDeadline] = useState('1800');
  const send = useSender(RollbackInstanceDocument);
  const what = { instanceId: workload.id, generation: number ?? null };
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Roll back ${workload.name}`,
        act: 'Roll back',
        danger: true,
        fields: ['generation', 'deadlineSeconds'],
        reasonNeeded: false,
        intro:
          'Restores exactly the version and configuration that it ran before. A failed rollback does not stop the workload.',
        wrong: new Map(number === undefined ? [['generation', 'Choose a generation.']] : []),
        plan: () =>
          ask(PlanRollbackInstanceDocument, { input: { ...what, deadlineSeconds: Number(deadline) } }).then((answer) =>
            answer.problem === undefined ? { data: answer.data.planRollbackInstance } : answer,
          ),
        send: (given) => send({ ...what, deadlineSeconds: Number(deadline), ...given }),
        form: (errors) => (
          <div className="stack">
            <div className="picks" role="radiogroup" aria-label="Generation">
              {generations.map((each) => (
                <GenerationChoice
                  key={each.id}
                  generation={each}
                  present={each.number === workload.generation}
                  chosen={each.number === number}
                  choose={() => setNumber(each.number)}
                />
              ))}
            </div>
            {generations.every((each) => each.number === workload.generation) && (
              <p className="small soft">There is no earlier generation.</p>
            )}
            {errors.has('generation') && (
              <p className="small" role="alert" style={{ color: 'var(--bad)' }}>
                {errors.get('generation')}
              </p>
            )}
            <DeadlineField value={deadline} onChange={setDeadline} errors={errors} />
          </div>
        ),
      }}
    />
  );
}

function GenerationChoice({
  generation,
  present,
  chosen,
  choose,
}: {
  generation: Generation;
  present: boolean;
  chosen: boolean;
  choose: () => void;
}) {
  return (
    <div className={`generation${chosen ? ' on' : ''}`} data-generation={generation.number}>
      <label className="row">
        <input type="radio" name="generation" checked={chosen} onChange={choose} />
        <span className="grow">
          <b>Generation {generation.number}</b> <span className="soft">version {generation.appVersion}</span>
        </span>
        {present && <span className="tag">current</span>}
        <span className="small faint">
          <Ago at={generation.createdAt} />
        </span>
      </label>
      <details className="fold">
        <summary>Configuration</summary>
        <Json value={generation.config} label={`Configuration of generation ${generation.number}`} />
      </details>
    </div>
  );
}

/** Decommissioning a workload. */
export function DecommissionDialog({ workload, onClose, onDone }: InstanceDialogProps) {
  const [value, setValue] = useState<Ending>({ force: false, onDeadline: 'FAIL', deadline: '900' });
  const send = useSender(DecommissionInstanceDocument);
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Decommission ${workload.name}`,
        act: 'Decommission',
        danger: true,
        fields: ['force', 'onDeadline', 'deadlineSeconds'],
        reasonNeeded: needsReason({ ...value, always: true }),
        intro:
          'Every member is stopped and removed, with everything that runs or is stored on it. The decommission is complete when the nodes have proved that nothing is left. You keep the allocations.',
        plan: () =>
          ask(PlanDecommissionInstanceDocument, { input: { instanceId: workload.id, ...endOf(value) } }).then(
            (answer) => (answer.problem === undefined ? { data: answer.data.planDecommissionInstance } : answer),
          ),
        send: (given) => send({ instanceId: workload.id, ...endOf(value), ...given }),
        form: (errors) => (
          <EndingFields
            value={value}
            onChange={setValue}
            errors={errors}
            forceHelp="Where a node does not answer, what is left there is listed as an orphan and cleaned up once it answers."
          />
        ),
      }}
    />
  );
}
