import { expect, it } from 'vitest';
import { actionNamed, columnsOf, inputWith, rowsOf, textAt } from './work';
import type { Work } from './work';

const work: Work = {
  title: 'Jobs',
  kind: 'job',
  list: { action: 'list', items: 'jobs', id: 'no', state: 'state', columns: ['no', 'name', 'state'], ended: ['DONE'] },
  output: null,
  cancel: null,
  submit: null,
};

it('reads the rows that the app declares, and leaves out what has no id', () => {
  const jobs = [{ no: 4, name: 'train', state: 'RUNNING', gone: true }, { no: 3, state: 'DONE' }, { name: 'x' }, 'x'];
  expect(rowsOf(work, { jobs })).toEqual([
    { id: '4', state: 'RUNNING', over: false, cells: ['4', 'train', 'RUNNING'] },
    { id: '3', state: 'DONE', over: true, cells: ['3', '', 'DONE'] },
  ]);
});

it('shows nothing of an answer of another shape', () => {
  for (const output of [null, 'jobs', [], {}, { jobs: 'none' }, { jobs: null }])
    expect(rowsOf(work, output)).toEqual([]);
  expect([textAt(null, 'text'), textAt({ text: 'a\nb' }, 'text'), textAt({ text: 7 }, 'text')]).toEqual([
    '',
    'a\nb',
    '7',
  ]);
});

it('takes the titles of the columns from the schema, and their names without one', () => {
  const fields = { no: { title: 'Job' }, name: { title: 7 } };
  const outputSchema = { properties: { jobs: { items: { properties: fields } } } };
  expect(columnsOf(work, { outputSchema }).map((each) => each.title)).toEqual(['Job', 'name', 'state']);
  expect(columnsOf(work, { outputSchema: true }).map((each) => each.title)).toEqual(['no', 'name', 'state']);
});

it('gives an id in the type that the action takes', () => {
  const inputSchema = { properties: { no: { type: 'integer' }, name: { type: 'string' } } };
  expect([inputWith({ inputSchema }, 'no', '4'), inputWith({ inputSchema }, 'name', '4')]).toEqual([
    { no: 4 },
    { name: '4' },
  ]);
  expect(actionNamed({ actions: [] }, 'list')).toBeUndefined();
});
