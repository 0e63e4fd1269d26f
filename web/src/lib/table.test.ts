import { expect, it } from 'vitest';
import { cellText, factsOf, tablesOf } from './table';

it('finds a list of objects below a property and gathers its columns in order of appearance', () => {
  expect(tablesOf({ jobs: [{ id: 1, state: 'RUNNING' }, { id: 2, user: 'a' }], total: 2 })).toEqual([
    { name: 'jobs', columns: ['id', 'state', 'user'], rows: [{ id: 1, state: 'RUNNING' }, { id: 2, user: 'a' }] },
  ]);
});

it('takes the answer itself when it is the list', () => {
  expect(tablesOf([{ a: 1 }])[0]?.name).toBe('');
});

it('finds none in plain values, empty lists and mixed lists', () => {
  expect([tablesOf(7), tablesOf({ a: [] }), tablesOf({ a: [1, {}] })]).toEqual([[], [], []]);
});

it('lists plain values as facts', () => {
  expect(factsOf({ jobId: 17, name: 'x', nested: {} })).toEqual([['jobId', '17'], ['name', 'x']]);
});

it('shows nothing for nothing and JSON for what is nested', () => {
  expect([cellText(null), cellText({ a: [1] }), cellText(false)]).toEqual(['', '{"a":[1]}', 'false']);
});
