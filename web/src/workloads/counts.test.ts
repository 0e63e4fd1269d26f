import { expect, it } from 'vitest';
import { activeOf, marksOf } from './counts';

it('counts a drained worker as drained, not as active', () => {
  expect(activeOf({ summary: '2 of 3 active, 1 drained', current: 3 })).toBe(2);
  expect(activeOf({ summary: 'whatever an adapter says', current: 3 })).toBe(3);
});

it('draws each member in the tone of its status', () => {
  const member = (
    componentKey: string,
    status: 'ACTIVE' | 'DRAINED' | 'DRAINING' | 'FAILED' | 'REMOVED',
    health: 'HEALTHY' | 'UNKNOWN',
  ) => ({ componentKey, status, health });
  expect(
    marksOf(
      [
        member('worker', 'FAILED', 'UNKNOWN'),
        member('worker', 'DRAINED', 'HEALTHY'),
        member('worker', 'ACTIVE', 'UNKNOWN'),
        member('worker', 'ACTIVE', 'HEALTHY'),
        member('worker', 'REMOVED', 'HEALTHY'),
        member('controller', 'ACTIVE', 'HEALTHY'),
        member('worker', 'DRAINING', 'HEALTHY'),
      ],
      'worker',
    ),
  ).toEqual(['there', 'healthy', 'tone-warn', 'tone-idle', 'tone-bad']);
});
