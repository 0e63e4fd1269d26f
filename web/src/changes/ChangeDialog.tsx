// The dialog of every change: a form, then the plan of what it would do, then a reason and the confirmation.
import { Button, Checkbox, Modal, Textarea } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { useReducer, useState } from 'react';
import type { ReactNode, SyntheticEvent } from 'react';
import { placeReasons } from '../api/errors';
import type { Answer } from '../api/hooks';
import type { PlanBitsFragment } from '../generated/graphql';
import { Icon } from '../ui/Icons';
import { Notice, ProblemNotice } from '../ui/Problem';
import { Loading } from '../ui/parts';
import { PlanPreview } from './PlanPreview';
import { needsSure, opening, planWantsReason, proceed, staleCode } from './flow';

/** The form, plan and mutation of a dialog. */
export interface Change {
  readonly title: string;
  /** The label of the button that sends the change. */
  readonly act: string;
  /** The label of the button that changes nothing, where "Cancel" could mean the change itself. */
  readonly dismiss?: string;
  readonly danger?: boolean;
  readonly intro: ReactNode;
  /** The input's fields whose errors are shown at the form's field; `config` includes everything below it. */
  readonly fields: readonly string[];
  /** The errors that the form itself finds; nothing is planned while there are any. */
  readonly wrong?: ReadonlyMap<string, string>;
  /** Reads the plan; undefined for changes without a plan. */
  readonly plan?: () => Promise<Answer<PlanBitsFragment>>;
  readonly send: (given: { planHash: string | null; reason: string | null }) => Promise<Answer<unknown>>;
  readonly reasonNeeded: boolean;
  /** Whether the mutation takes a reason; where it is false, the dialog has no field for one. */
  readonly reasonKept?: boolean;
  /** Draws the fields with their errors. */
  readonly form: (errors: ReadonlyMap<string, string>) => ReactNode;
}

/** The longest reason, in characters. */
const maxReason = 500;

/** The dialog, open as long as it is mounted. It closes when dismissed and after the change, before onDone. */
export function ChangeDialog({ change, onClose, onDone }: { change: Change; onClose: () => void; onDone: () => void }) {
  const phone = useMediaQuery('(max-width: 640px)');
  return (
    <Modal opened onClose={onClose} title={<b>{change.title}</b>} size="lg" fullScreen={phone} centered={!phone}>
      <ChangeForm change={change} onClose={onClose} onDone={onDone} />
    </Modal>
  );
}

/** The dialog's content: the form or the plan, depending on the step. */
export function ChangeForm({ change, onClose, onDone }: { change: Change; onClose: () => void; onDone: () => void }) {
  const way = useChange(change, () => {
    onClose();
    onDone();
  });
  const { flow } = way;
  const previewing = flow.plan !== undefined && (flow.step === 'preview' || flow.step === 'sending');
  return (
    <form className="stack" onSubmit={way.submit} noValidate data-step={flow.step}>
      {flow.stale !== undefined && (
        <StaleNotice messages={flow.stale.reasons.map((reason) => reason.message)} ready={previewing} />
      )}
      {flow.step === 'planning' && (
        <div style={{ minHeight: 260 }}>
          <p className="small soft">Planning the change …</p>
          <Loading lines={7} />
        </div>
      )}
      {flow.step !== 'planning' && previewing && <PlanPreview plan={flow.plan} />}
      {flow.step !== 'planning' && !previewing && (
        <>
          <div className="soft">{change.intro}</div>
          {change.form(way.errors)}
        </>
      )}
      {flow.step !== 'planning' &&
        change.reasonKept !== false &&
        (previewing || change.plan === undefined) &&
        flow.plan?.allowed !== false && (
          <Textarea
            label="Reason"
            description={
              way.reasonNeeded ? 'Required for this change, and stored in the audit log' : 'Stored in the audit log'
            }
            required={way.reasonNeeded}
            autosize
            minRows={2}
            maxRows={5}
            maxLength={maxReason}
            value={way.reason}
            onChange={(event) => way.setReason(event.currentTarget.value)}
            error={way.errors.get('reason')}
          />
        )}
      {previewing && flow.plan.allowed && needsSure(flow.plan) && (
        <Checkbox
          label={flow.plan.reversible ? 'I know that work may be lost' : 'I know that this cannot be undone'}
          checked={way.sure}
          onChange={(event) => way.setSure(event.currentTarget.checked)}
        />
      )}
      {flow.problem !== undefined && <ProblemNotice problem={flow.problem} reasons={way.rest} />}
      <Foot change={change} way={way} previewing={previewing} onClose={onClose} />
    </form>
  );
}

type Way = ReturnType<typeof useChange>;

function Foot({
  change,
  way,
  previewing,
  onClose,
}: {
  change: Change;
  way: Way;
  previewing: boolean;
  onClose: () => void;
}) {
  const { flow } = way;
  const colour = change.danger === true ? { color: 'red' } : {};
  return (
    <div className="dialog-foot">
      {previewing ? (
        <Button variant="default" onClick={way.back} disabled={flow.step === 'sending'}>
          Back
        </Button>
      ) : (
        <Button variant="default" onClick={onClose}>
          {change.dismiss ?? 'Cancel'}
        </Button>
      )}
      {change.plan !== undefined && !previewing ? (
        <Button type="submit" loading={flow.step === 'planning'} rightSection={<Icon name="right" size={14} />}>
          See the plan
        </Button>
      ) : (
        <Button type="submit" loading={flow.step === 'sending'} disabled={!way.ready} {...colour}>
          {change.act}
        </Button>
      )}
    </div>
  );
}

function StaleNotice({ messages, ready }: { messages: readonly string[]; ready: boolean }) {
  return (
    <Notice tone="warn" icon="info" role="alert">
      <b>The plan is out of date, and nothing was changed.</b>
      {messages.length > 0 && (
        <ul>
          {messages.map((message, at) => (
            <li key={at} className="said">
              {message}
            </li>
          ))}
        </ul>
      )}
      <p>
        {ready
          ? 'Below is the new plan. Read it, and continue if it is still what you want.'
          : 'A new plan is being created.'}
      </p>
    </Notice>
  );
}

/** The dialog's state: its step, the reason, and the errors by field. */
function useChange(change: Change, onDone: () => void) {
  const [flow, dispatch] = useReducer(proceed, opening);
  const [reason, setReason] = useState('');
  const [sure, setSure] = useState(false);
  const [tried, setTried] = useState(false);
  const placed = placeReasons(
    flow.problem?.reasons ?? [],
    (path) => change.fields.some((field) => path === field || path.startsWith(`${field}.`)) || path === 'reason',
  );
  const own = change.wrong ?? new Map<string, string>();
  const errors = new Map([...placed.fields, ...(tried ? own : [])]);
  const given = reason.trim();
  const planned = flow.plan;
  const reasonNeeded = change.reasonNeeded || planWantsReason(planned);
  const ready =
    flow.step !== 'planning' &&
    (!reasonNeeded || given !== '') &&
    (planned === undefined || (planned.allowed && (!needsSure(planned) || sure)));

  const makePlan = async (plan: NonNullable<Change['plan']>) => {
    setSure(false);
    const answer = await plan();
    dispatch(
      answer.problem === undefined
        ? { kind: 'planned', plan: answer.data }
        : { kind: 'failed', problem: answer.problem },
    );
  };
  const send = async () => {
    dispatch({ kind: 'send' });
    const answer = await change.send({ planHash: planned?.hash ?? null, reason: given === '' ? null : given });
    if (answer.problem === undefined) {
      onDone();
      return;
    }
    dispatch({ kind: 'failed', problem: answer.problem });
    if (answer.problem.code === staleCode && planned !== undefined && change.plan !== undefined)
      await makePlan(change.plan);
  };
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    setTried(true);
    if (own.size > 0 || flow.step === 'planning' || flow.step === 'sending') return;
    if (flow.step === 'form' && change.plan !== undefined) {
      dispatch({ kind: 'plan' });
      void makePlan(change.plan);
    } else if (ready) {
      void send();
    }
  };
  const back = () => dispatch({ kind: 'back' });
  return { flow, reason, setReason, reasonNeeded, sure, setSure, errors, rest: placed.rest, ready, submit, back };
}
