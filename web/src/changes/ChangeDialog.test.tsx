// @vitest-environment happy-dom
import { MantineProvider } from '@mantine/core';
import { act } from 'react';
import { createRoot } from 'react-dom/client';
import type { Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { plain } from '../api/errors';
import type { Problem } from '../api/errors';
import type { Answer } from '../api/hooks';
import type { PlanBitsFragment } from '../generated/graphql';
import { ChangeForm } from './ChangeDialog';
import type { Change } from './ChangeDialog';

vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
Object.defineProperty(document, 'fonts', { value: new EventTarget() }); // which this environment lacks

let root: Root;
let box: HTMLElement;

beforeEach(() => {
  box = document.createElement('div');
  document.body.append(box);
  root = createRoot(box);
});
afterEach(() => {
  act(() => root.unmount());
  box.remove();
});

const plan: PlanBitsFragment = {
  hash: 'one',
  kind: 'MEMBER_REMOVE',
  allowed: true,
  members: [],
  workLost: [],
  workLostTotal: 0,
  force: false,
  deadlineSeconds: 3600,
  onDeadline: 'FAIL',
  keepFailed: false,
  workAtRisk: [],
  workAtRiskTotal: null,
  reversible: true,
  reversal: '',
  supersedes: [],
  impact: { controlPlaneScope: 'PROJECT', attachedTotal: 0, membersTotal: 1, openOperations: 0, projects: [] },
  change: {},
  cost: {
    totals: [{ currency: 'EUR', before: '9.6', after: '9.6', delta: '0', left: '4.8' }],
    unpriced: 1,
    capacity: [{ effect: 'LEFT', count: 1, shape: 'BAREMETAL', gpuCount: 4, sku: '', region: '', hourly: null }],
    usage: [{ dimension: 'jobs', unit: 'job', price: null }],
  },
  verdicts: [{ source: 'STATE', outcome: 'ALLOWED', reasons: [] }],
};

function problem(code: string, ...reasons: Problem['reasons']): Answer<never> {
  return { problem: { ...plain(code, 'No.', 'c-1'), reasons } };
}

/** Returns a change with the given plans and answers, and the list of what it sends. */
function change(
  given: Partial<Change> = {},
  plans: Answer<PlanBitsFragment>[] = [{ data: plan }],
  answers: Answer<unknown>[] = [{ data: {} }],
) {
  const sent: unknown[] = [];
  const made: Change = {
    title: 'Remove worker 0',
    act: 'Remove',
    intro: 'It is taken out.',
    fields: ['count', 'config'],
    reasonNeeded: false,
    plan: () =>
      Promise.resolve(plans.length > 1 ? (plans.shift() ?? plans[0] ?? problem('X')) : (plans[0] ?? problem('X'))),
    send: (input) => {
      sent.push(input);
      return Promise.resolve(answers.shift() ?? { data: {} });
    },
    form: (errors) => <p data-form>{[...errors].map(([path, message]) => `${path}: ${message}`).join()}</p>,
    ...given,
  };
  return { made, sent };
}

async function show(made: Change, close = vi.fn()) {
  const done = vi.fn();
  await act(async () =>
    root.render(
      <MantineProvider>
        <ChangeForm change={made} onClose={close} onDone={done} />
      </MantineProvider>,
    ),
  );
  return done;
}

const button = (name: string) => [...box.querySelectorAll('button')].find((each) => each.textContent === name);
const press = (name: string) => act(async () => button(name)?.click());

async function write(text: string) {
  const area = box.querySelector('textarea:not([aria-hidden])');
  if (!(area instanceof HTMLTextAreaElement)) throw new Error('there is no place for a reason');
  await act(async () => {
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value')?.set?.call(area, text);
    area.dispatchEvent(new Event('input', { bubbles: true }));
  });
}

it('says what an hour costs afterwards, and never shows what has no price as zero', async () => {
  await show(change().made);
  await press('See the plan');
  const cost = box.querySelector('[data-cost]')?.textContent ?? '';
  expect(cost).toContain('9.60 EUR an hour, as before; 4.80 EUR of it for capacity that would be unused');
  expect(cost).toContain('No price set for 1 allocation');
  expect(cost.match(/No price set/g)).toHaveLength(3);
  expect(cost).not.toContain('0.00');
});

it('shows the plan before anything is sent, and sends its hash', async () => {
  const { made, sent } = change();
  const done = await show(made);
  expect(button('Remove')).toBeUndefined();
  await press('See the plan');
  expect(box.querySelector('[data-plan="one"]')).not.toBeNull();
  expect(sent).toEqual([]);
  await press('Remove');
  expect(sent).toEqual([{ planHash: 'one', reason: null }]);
  expect(done).toHaveBeenCalledOnce();
});

it('plans nothing while the form itself is wrong, and says what', async () => {
  const planned = vi.fn();
  const { made } = change({ wrong: new Map([['count', 'Must be 1 to 4.']]), plan: planned });
  await show(made);
  await press('See the plan');
  expect(planned).not.toHaveBeenCalled();
  expect(box.querySelector('[data-form]')?.textContent).toBe('count: Must be 1 to 4.');
});

it('shows why there is no plan at the field that is at fault', async () => {
  const { made } = change({}, [
    problem('INVALID_ARGUMENT', { code: 'INVALID_ARGUMENT', message: 'must be 1 to 64', path: 'input.count' }),
  ]);
  await show(made);
  await press('See the plan');
  expect(box.querySelector('[data-form]')?.textContent).toBe('count: Must be 1 to 64.');
  expect(box.querySelector('[data-code="INVALID_ARGUMENT"]')).not.toBeNull();
});

it('cannot go on with a plan that says no', async () => {
  const refused: PlanBitsFragment = {
    ...plan,
    allowed: false,
    verdicts: [
      { source: 'COMPATIBILITY', outcome: 'REFUSED', reasons: [{ code: 'X', message: 'needs one worker', path: '' }] },
    ],
  };
  const { made, sent } = change({}, [{ data: refused }]);
  await show(made);
  await press('See the plan');
  expect(box.textContent).toContain('This would be refused');
  expect(box.textContent).toContain('needs one worker');
  expect(button('Remove')?.disabled).toBe(true);
  await press('Remove');
  expect(sent).toEqual([]);
});

it('waits for a reason where one is needed', async () => {
  const { made, sent } = change({ reasonNeeded: true });
  await show(made);
  await press('See the plan');
  expect(button('Remove')?.disabled).toBe(true);
  await write('  it is broken ');
  await press('Remove');
  expect(sent).toEqual([{ planHash: 'one', reason: 'it is broken' }]);
});

it('waits for a reason when the plan says that one is needed', async () => {
  const wanting: PlanBitsFragment = {
    ...plan,
    verdicts: [
      {
        source: 'STATE',
        outcome: 'ALLOWED',
        reasons: [{ code: 'REQUIRED', message: 'a reason must be given', path: 'input.reason' }],
      },
    ],
  };
  const { made, sent } = change({}, [{ data: wanting }]);
  await show(made);
  await press('See the plan');
  expect(button('Remove')?.disabled).toBe(true);
  await write('it is broken');
  await press('Remove');
  expect(sent).toHaveLength(1);
});

it('asks once more before work is lost', async () => {
  const { made, sent } = change({}, [{ data: { ...plan, workLostTotal: null } }]);
  await show(made);
  await press('See the plan');
  expect(button('Remove')?.disabled).toBe(true);
  await act(async () => box.querySelector<HTMLInputElement>('input[type="checkbox"]')?.click());
  await press('Remove');
  expect(sent).toHaveLength(1);
});

it('makes a stale plan anew, says what moved, and sends only after the new one was read', async () => {
  const stale = problem('PLAN_STALE', { code: 'PLAN_STALE', message: 'the member is draining now', path: '' });
  const { made, sent } = change({}, [{ data: plan }, { data: { ...plan, hash: 'two' } }], [stale, { data: {} }]);
  const done = await show(made);
  await press('See the plan');
  await press('Remove');
  expect(done).not.toHaveBeenCalled();
  expect(box.textContent).toContain('nothing was changed');
  expect(box.textContent).toContain('the member is draining now');
  expect(box.querySelector('[data-plan="two"]')).not.toBeNull();
  await press('Remove');
  expect(sent).toEqual([
    { planHash: 'one', reason: null },
    { planHash: 'two', reason: null },
  ]);
  expect(done).toHaveBeenCalledOnce();
});

it('keeps the plan on the page when sending is refused for another reason', async () => {
  const { made } = change(
    {},
    [{ data: plan }],
    [problem('CONFLICT', { code: 'CONFLICT', message: 'op_7 is under way', path: '' })],
  );
  const done = await show(made);
  await press('See the plan');
  await press('Remove');
  expect(box.querySelector('[data-plan="one"]')).not.toBeNull();
  expect(box.textContent).toContain('op_7 is under way');
  expect(done).not.toHaveBeenCalled();
});

it('goes back to the form, which then plans again', async () => {
  const { made } = change({}, [{ data: plan }, { data: { ...plan, hash: 'two' } }]);
  await show(made);
  await press('See the plan');
  await press('Back');
  expect(box.querySelector('[data-form]')).not.toBeNull();
  await press('See the plan');
  expect(box.querySelector('[data-plan="two"]')).not.toBeNull();
});

it('sends a change without a plan at once, with the reason', async () => {
  const { title, act: word, intro, fields, form } = change().made;
  const sent: unknown[] = [];
  const done = await show({
    title,
    act: word,
    intro,
    fields,
    form,
    reasonNeeded: false,
    send: (given) => {
      sent.push(given);
      return Promise.resolve({ data: {} });
    },
  });
  await write('quiet hours');
  await press('Remove');
  expect(sent).toEqual([{ planHash: null, reason: 'quiet hours' }]);
  expect(done).toHaveBeenCalledOnce();
});

it('asks for no reason where the mutation keeps none', async () => {
  const { made, sent } = change({ plan: undefined, reasonKept: false });
  await show(made);
  expect(box.querySelector('textarea')).toBeNull();
  await press('Remove');
  expect(sent).toEqual([{ planHash: null, reason: null }]);
});

it('closes once the change is made, and stays open when it was refused', async () => {
  const order: string[] = [];
  const { made } = change({ plan: undefined }, [], [problem('CONFLICT'), { data: {} }]);
  const close = vi.fn(() => order.push('closed'));
  const done = await show(made, close);
  done.mockImplementation(() => order.push('done'));
  await press('Remove');
  expect(order).toEqual([]);
  await press('Remove');
  expect(order).toEqual(['closed', 'done']);
});
