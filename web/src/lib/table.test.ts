import { expect, it } from 'vitest';
import { cellText, factsOf, isOutput, tablesOf } from './table';

it('finds a list of objects below a property and gathers its columns in order of appearance', () => {
  expect(
    tablesOf({
      jobs: [
        { id: 1, state: 'RUNNING' },
        { id: 2, user: 'a' },
      ],
      total: 2,
    }),
  ).toEqual([
    {
      name: 'jobs',
      columns: ['id', 'state', 'user'],
      rows: [
        { id: 1, state: 'RUNNING' },
        { id: 2, user: 'a' },
      ],
    },
  ]);
});

it('takes the answer itself when it is the list', () => {
  expect(tablesOf([{ a: 1 }])[0]?.name).toBe('');
});

it('leaves out columns that are empty in every row', () => {
  expect(
    tablesOf([
      { a: 1, b: null, c: '' },
      { a: 2, b: null, c: 'x' },
    ])[0]?.columns,
  ).toEqual(['a', 'c']);
});

it('finds none in plain values, empty lists and mixed lists', () => {
  expect([tablesOf(7), tablesOf({ a: [] }), tablesOf({ a: [1, {}] })]).toEqual([[], [], []]);
});

it('lists plain values as facts', () => {
  expect(factsOf({ jobId: 17, name: 'x', nested: {} })).toEqual([
    ['jobId', '17'],
    ['name', 'x'],
  ]);
});

it('knows what a program wrote, by its lines or its name', () => {
  expect([
    isOutput('output', 'done'),
    isOutput('stdout', ''),
    isOutput('message', 'a\nb'),
    isOutput('jobId', '17'),
    isOutput('outputBytes', '9'),
  ]).toEqual([true, true, true, false, false]);
});

it('shows a list of texts one a line and an instant in local time', () => {
  expect(cellText(['a', 'b'])).toBe('a\nb');
  expect(cellText('2026-01-02T03:04:05Z')).not.toContain('T03');
});

it('shows nothing for nothing and JSON for what is nested', () => {
  expect([cellText(null), cellText({ a: [1] }), cellText(false)]).toEqual(['', '{"a":[1]}', 'false']);
});
