import { describe, expect, it } from 'vitest';
import { stages, stepsFrom } from './stages';

describe('steps between stages', () => {
  it('lead through every stage to the end, and back from a canary alone', () => {
    for (const [at, stage] of stages.entries()) {
      const [first, ...others] = stepsFrom(stage);
      expect(first?.to).toBe(stages[at + 1]);
      expect(others.map((step) => step.to)).toEqual(stage === 'CANARY' ? ['STAGED'] : []);
    }
  });
});
