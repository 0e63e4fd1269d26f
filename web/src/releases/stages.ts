// The stages of trust and the steps between them, as in the platform's table.
import type { Stage } from '../generated/graphql';

/** The stages in the order in which a version passes them. */
export const stages: readonly Stage[] = ['DRAFT', 'STAGED', 'CANARY', 'ACTIVE', 'DEPRECATED', 'RETIRED'];

/** A step to another stage. */
export interface Step {
  readonly to: Stage;
  /** The label of its button. */
  readonly act: string;
  /** Whether the step makes the version less available. */
  readonly danger: boolean;
  /** What it means, in a sentence. */
  readonly means: string;
}

const steps: Readonly<Record<Stage, readonly Step[]>> = {
  DRAFT: [
    {
      to: 'STAGED',
      act: 'Stage',
      danger: false,
      means: 'It can then be rolled out. Lint, smoke launch and reports are checked again.',
    },
  ],
  STAGED: [
    {
      to: 'CANARY',
      act: 'Start the canary',
      danger: false,
      means: 'New launches in some of the projects get it, always in the same ones.',
    },
  ],
  CANARY: [
    {
      to: 'ACTIVE',
      act: 'Make it active',
      danger: false,
      means: 'Every new launch gets it, and the version that was active is deprecated.',
    },
    {
      to: 'STAGED',
      act: 'Roll back',
      danger: true,
      means: 'New launches no longer get it. Running workloads continue.',
    },
  ],
  ACTIVE: [
    {
      to: 'DEPRECATED',
      act: 'Deprecate',
      danger: true,
      means: 'It can no longer be launched. Running workloads continue.',
    },
  ],
  DEPRECATED: [
    {
      to: 'RETIRED',
      act: 'Retire',
      danger: true,
      means: 'It is withdrawn for good; refused while a live instance uses it.',
    },
  ],
  RETIRED: [],
};

/** The steps that lead on from a stage. */
export function stepsFrom(stage: Stage): readonly Step[] {
  return steps[stage];
}
