import { expect, test } from 'vitest';
import { verbsOn, whyNot } from './standing';

const well = {
  status: 'ONLINE' as const,
  cordoned: false,
  cordonReason: '',
  lost: false,
  conditions: null,
  drain: null,
};
const drain = {
  since: '2026-01-01T00:00:00Z',
  by: 'Olga',
  reason: '',
  deadlineSeconds: 600,
  force: false,
  ending: false,
};
const bad = {
  name: 'gpu',
  state: 'BAD' as const,
  message: 'an error',
  since: '2026-01-01T00:00:00Z',
  effect: 'NO_NEW_MEMBERS' as const,
};

test('a node says in a sentence why it takes no members', () => {
  expect(whyNot(well)).toBeUndefined();
  expect(whyNot({ ...well, conditions: [{ ...bad, effect: 'NONE' }] })).toBeUndefined();
  expect(whyNot({ ...well, conditions: [bad] })).toBe('gpu is bad: an error');
  expect(whyNot({ ...well, cordoned: true, cordonReason: 'a fan' })).toBe('cordoned: a fan');
  expect(whyNot({ ...well, cordoned: true, drain: { ...drain, force: true } })).toBe('being drained by force');
  expect(whyNot({ ...well, status: 'OFFLINE' })).toBe('its agent does not answer');
  expect(whyNot({ ...well, status: 'RETIRED', lost: true })).toBe('retired as lost for good');
});

test('only what makes sense on a node is offered', () => {
  expect(verbsOn(well)).toEqual(['cordon', 'drain', 'retire']);
  expect(verbsOn({ ...well, cordoned: true, drain })).toEqual(['uncordon', 'force', 'retire']);
  expect(verbsOn({ ...well, cordoned: true, drain: { ...drain, force: true } })).toEqual(['uncordon', 'retire']);
  expect(verbsOn({ ...well, status: 'OFFLINE' })).toEqual(['cordon', 'drain', 'lost']);
  expect(verbsOn({ ...well, status: 'RETIRED' })).toEqual([]);
});
