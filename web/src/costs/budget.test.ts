import { expect, it } from 'vitest';
import { wrongBudget } from './budget';

const given = { scope: 'PROJECT', targetId: 'prj_1', amount: '250.00', thresholds: ['50', '80', '100'] } as const;

it('takes a budget that the platform takes', () => {
  expect(wrongBudget(given).size).toBe(0);
  expect(wrongBudget({ ...given, amount: ' 0.01 ', thresholds: [] }).size).toBe(0);
});

it.each([
  ['targetId', { targetId: '' }],
  ['amount', { amount: '' }],
  ['amount', { amount: '0.00' }],
  ['amount', { amount: '-5' }],
  ['amount', { amount: '1,000' }],
  ['amount', { amount: '1e3' }],
  ['thresholds', { thresholds: ['0'] }],
  ['thresholds', { thresholds: ['1001'] }],
  ['thresholds', { thresholds: ['half'] }],
  ['thresholds', { thresholds: Array.from({ length: 11 }, (_, at) => String(at + 1)) }],
])('says at %s what is wrong with %o', (field, change) => {
  expect([...wrongBudget({ ...given, ...change }).keys()]).toEqual([field]);
});
