// The steps of a change through its dialog: the form, the plan, and the confirmation.
import type { Problem } from '../api/errors';
import type { PlanBitsFragment } from '../generated/graphql';
import { duration, plural } from '../lib/format';

/** The step of the dialog. */
export type Step = 'form' | 'planning' | 'preview' | 'sending';

/** The dialog's state. */
export interface Flow {
  readonly step: Step;
  /** The plan that is shown; it stays while the change is sent. */
  readonly plan: PlanBitsFragment | undefined;
  /** The last error. */
  readonly problem: Problem | undefined;
  /** Why the previous plan was refused as stale; undefined when it was not. */
  readonly stale: Problem | undefined;
}

/** What can happen to the dialog. */
export type Happening =
  | { readonly kind: 'plan' }
  | { readonly kind: 'planned'; readonly plan: PlanBitsFragment }
  | { readonly kind: 'failed'; readonly problem: Problem }
  | { readonly kind: 'back' }
  | { readonly kind: 'send' };

/** The dialog as it opens. */
export const opening: Flow = { step: 'form', plan: undefined, problem: undefined, stale: undefined };

/** The error code of a change whose plan is stale. */
export const staleCode = 'PLAN_STALE';

/** Returns the next state. A stale plan is read again immediately; other refusals lead back to where to fix them. */
export function proceed(flow: Flow, happening: Happening): Flow {
  switch (happening.kind) {
    case 'plan':
      return { ...flow, step: 'planning', problem: undefined, stale: undefined };
    case 'planned':
      return { ...flow, step: 'preview', plan: happening.plan, problem: undefined };
    case 'back':
      return { ...opening, problem: undefined };
    case 'send':
      return { ...flow, step: 'sending', problem: undefined };
    case 'failed':
      return failed(flow, happening.problem);
  }
}

function failed(flow: Flow, problem: Problem): Flow {
  if (flow.step === 'sending' && problem.code === staleCode && flow.plan !== undefined) {
    return { ...flow, step: 'planning', problem: undefined, stale: problem };
  }
  const step = flow.step === 'sending' && flow.plan !== undefined ? 'preview' : 'form';
  return { ...flow, step, problem };
}

/** The choices that decide whether a reason is required. */
export interface Terms {
  readonly force?: boolean;
  readonly onDeadline?: 'FAIL' | 'FORCE';
  /** The kind's own rule, such as replacing a healthy member. */
  readonly always?: boolean;
}

/** Reports whether the platform requires a reason. */
export function needsReason({ force = false, onDeadline = 'FAIL', always = false }: Terms): boolean {
  return force || onDeadline === 'FORCE' || always;
}

/** Reports whether a plan states that the change requires a reason. */
export function planWantsReason(plan: Pick<PlanBitsFragment, 'verdicts'> | undefined): boolean {
  return (
    plan?.verdicts.some((verdict) =>
      verdict.reasons.some((reason) => reason.code === 'REQUIRED' && reason.path.endsWith('reason')),
    ) ?? false
  );
}

/** Returns the text of a plan's overall verdict. */
export function planWord(
  plan: Pick<PlanBitsFragment, 'allowed' | 'verdicts' | 'workLostTotal' | 'onDeadline' | 'workAtRiskTotal'>,
): { text: string; tone: 'good' | 'warn' | 'bad' } {
  if (!plan.allowed) return { text: 'This would be refused', tone: 'bad' };
  if (plan.workLostTotal !== null && plan.workLostTotal > 0)
    return { text: 'This can be done, and work would be lost', tone: 'warn' };
  if (mayLoseLater(plan))
    return { text: 'This can be done, and work may be lost when the deadline passes', tone: 'warn' };
  const unknown = plan.verdicts.filter((verdict) => verdict.outcome === 'UNKNOWN');
  if (unknown.length > 0) return { text: 'No check refused it, but not every check could answer', tone: 'warn' };
  return { text: 'This can be done', tone: 'good' };
}

/** Reports whether force at the deadline may lose work, which the adapter does not rule out. */
function mayLoseLater(plan: Pick<PlanBitsFragment, 'onDeadline' | 'workAtRiskTotal'>): boolean {
  return plan.onDeadline === 'FORCE' && plan.workAtRiskTotal !== 0;
}

/** Returns a text for the time that the change has, and for what happens then. */
export function deadlineWord(
  plan: Pick<PlanBitsFragment, 'deadlineSeconds' | 'onDeadline' | 'workAtRiskTotal' | 'keepFailed'>,
): string {
  const after = `After ${duration(plan.deadlineSeconds * 1000)} it`;
  if (plan.onDeadline === 'FAIL')
    return plan.keepFailed ? `${after} fails, and members that could not join are kept` : `${after} fails`;
  if (plan.workAtRiskTotal === null) return `${after} is forced; it is unknown what work would be lost then`;
  return `${after} is forced; ${plan.workAtRiskTotal === 0 ? 'no work' : plural(plan.workAtRiskTotal, 'piece')}${plan.workAtRiskTotal === 0 ? '' : ' of work'} would be lost if that were now`;
}

/** Returns a text for the work that would be lost. */
export function lostWord(plan: Pick<PlanBitsFragment, 'workLost' | 'workLostTotal'>): string {
  if (plan.workLostTotal === null) return 'It is unknown what work would be lost';
  if (plan.workLostTotal === 0) return 'No work would be lost';
  return plan.workLostTotal === 1
    ? '1 piece of work would be lost'
    : `${plan.workLostTotal} pieces of work would be lost`;
}

/** Reports whether the person must confirm that work may be lost or that the change cannot be undone. */
export function needsSure(
  plan: Pick<PlanBitsFragment, 'reversible' | 'workLostTotal' | 'onDeadline' | 'workAtRiskTotal'>,
): boolean {
  return !plan.reversible || plan.workLostTotal !== 0 || mayLoseLater(plan);
}
