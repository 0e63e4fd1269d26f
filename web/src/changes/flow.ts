// The way of a change through its dialog: what is asked for, what it would do, and the word that it shall be done.
import type { Problem } from '../api/errors';
import type { PlanBitsFragment } from '../generated/graphql';

/** Where the dialog stands. */
export type Step = 'form' | 'planning' | 'preview' | 'sending';

/** The dialog's state. */
export interface Flow {
  readonly step: Step;
  /** The plan on the page; it stays while it is sent. */
  readonly plan: PlanBitsFragment | undefined;
  /** What went wrong last. */
  readonly problem: Problem | undefined;
  /** What had moved when the plan before this one was sent; undefined when none was refused. */
  readonly stale: Problem | undefined;
}

/** What can happen to it. */
export type Happening =
  | { readonly kind: 'plan' }
  | { readonly kind: 'planned'; readonly plan: PlanBitsFragment }
  | { readonly kind: 'failed'; readonly problem: Problem }
  | { readonly kind: 'back' }
  | { readonly kind: 'send' };

/** The dialog as it opens. */
export const opening: Flow = { step: 'form', plan: undefined, problem: undefined, stale: undefined };

/** The code of a change whose plan no longer holds. */
export const staleCode = 'PLAN_STALE';

/** The next state. A plan that no longer holds is made anew at once; every other refusal leads back to where it can be mended. */
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

/** Choices that bear on whether a reason must be given. */
export interface Terms {
  readonly force?: boolean;
  readonly onDeadline?: 'FAIL' | 'FORCE';
  /** The kind's own rule, such as replacing a healthy member. */
  readonly always?: boolean;
}

/** Whether the platform asks for a reason. */
export function needsReason({ force = false, onDeadline = 'FAIL', always = false }: Terms): boolean {
  return force || onDeadline === 'FORCE' || always;
}

/** Whether a plan says that the change needs a reason. */
export function planWantsReason(plan: Pick<PlanBitsFragment, 'verdicts'> | undefined): boolean {
  return plan?.verdicts.some((verdict) => verdict.reasons.some((reason) => reason.code === 'REQUIRED' && reason.path.endsWith('reason'))) ?? false;
}

/** The words of a plan's verdict on the whole. */
export function planWord(plan: Pick<PlanBitsFragment, 'allowed' | 'verdicts' | 'workLostTotal'>): { text: string; tone: 'good' | 'warn' | 'bad' } {
  if (!plan.allowed) return { text: 'This would be refused', tone: 'bad' };
  if (plan.workLostTotal !== null && plan.workLostTotal > 0) return { text: 'This can be done, and work would be lost', tone: 'warn' };
  const unknown = plan.verdicts.filter((verdict) => verdict.outcome === 'UNKNOWN');
  if (unknown.length > 0) return { text: 'No check refused it, but not every check could answer', tone: 'warn' };
  return { text: 'This can be done', tone: 'good' };
}

/** What would be lost, in words. */
export function lostWord(plan: Pick<PlanBitsFragment, 'workLost' | 'workLostTotal'>): string {
  if (plan.workLostTotal === null) return 'It is unknown what work would be lost';
  if (plan.workLostTotal === 0) return 'No work would be lost';
  return plan.workLostTotal === 1 ? '1 piece of work would be lost' : `${plan.workLostTotal} pieces of work would be lost`;
}

/** Whether a person has to say once more that they know what they lose. */
export function needsSure(plan: Pick<PlanBitsFragment, 'reversible' | 'workLostTotal'>): boolean {
  return !plan.reversible || plan.workLostTotal !== 0;
}
