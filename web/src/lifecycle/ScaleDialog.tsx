// Bringing a component to a number of members: missing members are added, or surplus members are removed.
import { Checkbox, NumberInput, Select } from '@mantine/core';
import { useState } from 'react';
import { ask, useSender } from '../api/hooks';
import { useSession } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import { needsReason } from '../changes/flow';
import { PlanScaleComponentDocument, ScaleComponentDocument } from '../generated/graphql';
import { intentWord } from '../lib/capacity';
import { plural } from '../lib/format';
import { DeadlineField, EndingFields, PlaceFields, endOf, firstPlace, intentOf, placeProblem } from './fields';
import type { Ending, Place } from './fields';
import type { InstanceDialogProps } from './InstanceDialogs';
import type { Workload } from './workload';

/** The direction of a scaling. */
export type Direction = 'up' | 'down' | 'none';

/** Returns the direction from a component's number of members to another. */
export function directionOf(from: number, to: number): Direction {
  if (to > from) return 'up';
  return to < from ? 'down' : 'none';
}

/** The bounds of a component and how many members it has. */
export interface Scalable {
  readonly min: number;
  readonly max: number;
  readonly now: number;
}

/** Returns the errors that the form finds in a scaling. */
export function scaleProblems(
  count: number | string,
  of: Scalable,
  place: string | undefined,
  may: { readonly up: boolean; readonly down: boolean },
): Map<string, string> {
  const found = new Map<string, string>();
  const number = Number(count);
  const way = directionOf(of.now, number);
  if (count === '' || !Number.isInteger(number) || number < of.min || number > of.max)
    found.set('count', of.min === of.max ? `It always has ${of.min}.` : `Must be ${of.min} to ${of.max}.`);
  else if (way === 'none') found.set('count', `It has ${plural(of.now, 'member')} already.`);
  else if (!may[way]) found.set('count', way === 'up' ? 'You may not add members.' : 'You may not remove members.');
  if (way === 'up' && place !== undefined) found.set('allocationIds', place);
  return found;
}

const ending: Ending = { force: false, onDeadline: 'FAIL', deadline: '3600' };

function scalable(workload: Workload, key: string): Scalable {
  const component = workload.manifest.components.find((each) => each.key === key);
  return {
    min: component?.min ?? 0,
    max: component?.max ?? 0,
    now: workload.roles.find((role) => role.componentKey === key)?.desired ?? 0,
  };
}

/** The dialog of a scaling. */
export function ScaleDialog({ workload, onClose, onDone }: InstanceDialogProps) {
  const components = workload.manifest.components;
  const { can } = useSession();
  const [componentKey, setComponentKey] = useState(
    () => components.find((each) => each.max > each.min)?.key ?? components[0]?.key ?? '',
  );
  const of = scalable(workload, componentKey);
  const [count, setCount] = useState<number | string>(of.now);
  const kept = workload.roles.find((role) => role.componentKey === componentKey)?.capacityIntent ?? null;
  const [chosen, setPlace] = useState<Place>({ ...firstPlace, mode: 'same' });
  const place: Place = kept === null && chosen.mode === 'same' ? { ...chosen, mode: 'existing' } : chosen;
  const [keepFailed, setKeepFailed] = useState(false);
  const [end, setEnd] = useState(ending);
  const send = useSender(ScaleComponentDocument);
  const way = directionOf(of.now, Number(count));
  const where =
    way === 'up'
      ? {
          allocationIds: place.mode === 'existing' ? [...place.allocationIds] : null,
          intent: intentOf(place),
          keepFailed,
        }
      : {};
  const what = {
    instanceId: workload.id,
    componentKey,
    count: Number(count),
    ...where,
    ...(way === 'up' ? { deadlineSeconds: Number(end.deadline) } : endOf(end)),
  };
  const may = {
    up: can(`${workload.permissionFamily}.member.add`),
    down: can(`${workload.permissionFamily}.member.remove`),
  };
  const choose = (key: string) => {
    setComponentKey(key);
    setCount(scalable(workload, key).now);
  };
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Scale ${workload.name}`,
        act: 'Scale',
        danger: way === 'down',
        reasonNeeded: way === 'down' && needsReason(end),
        fields: [
          'componentKey',
          'count',
          'allocationIds',
          'intent',
          'keepFailed',
          'force',
          'onDeadline',
          'deadlineSeconds',
        ],
        intro:
          'State how many members the component is to have. Missing members are added; surplus members are drained and removed, and the plan shows which ones.',
        wrong: scaleProblems(count, of, placeProblem(place), may),
        plan: () =>
          ask(PlanScaleComponentDocument, { input: what }).then((answer) =>
            answer.problem === undefined ? { data: answer.data.planScaleComponent } : answer,
          ),
        send: (given) => send({ ...what, ...given }),
        form: (errors) => (
          <div className="stack">
            <div className="form-grid">
              <Select
                label="Component"
                data={components.map((each) => ({ value: each.key, label: each.displayName }))}
                value={componentKey}
                onChange={(next) => choose(next ?? componentKey)}
                allowDeselect={false}
                error={errors.get('componentKey')}
              />
              <NumberInput
                label="Members"
                description={`${of.now} now; ${of.min === of.max ? `always ${of.min}` : `${of.min} to ${of.max}`}`}
                min={of.min}
                max={of.max}
                clampBehavior="none"
                allowDecimal={false}
                value={count}
                onChange={setCount}
                error={errors.get('count')}
                data-autofocus
              />
            </div>
            {way === 'up' && (
              <>
                <PlaceFields
                  value={place}
                  onChange={setPlace}
                  errors={errors}
                  instanceId={workload.id}
                  sameName="As the launch requested"
                  {...(kept === null
                    ? {}
                    : { same: `${intentWord(kept)} for each member, requested with the change.` })}
                />
                <Checkbox
                  label="Keep members that could not join"
                  description="They stay as failed members, to be recovered or replaced, instead of all being removed again."
                  checked={keepFailed}
                  onChange={(event) => setKeepFailed(event.currentTarget.checked)}
                  error={errors.get('keepFailed')}
                />
                <DeadlineField
                  value={end.deadline}
                  onChange={(deadline) => setEnd({ ...end, deadline })}
                  errors={errors}
                />
              </>
            )}
            {way === 'down' && (
              <EndingFields
                value={end}
                onChange={setEnd}
                errors={errors}
                forceHelp="Running work is lost. Where a node does not answer, what is left is listed as an orphan and cleaned up once it answers."
              />
            )}
          </div>
        ),
      }}
    />
  );
}
