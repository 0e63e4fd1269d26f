import { describe, expect, it } from 'vitest';
import { fieldsOf, hasField, initialValue, isEmpty, validate, widgetOf, withKey } from './schema';
import type { Schema } from './schema';

const schema: Schema = {
  type: 'object',
  additionalProperties: false,
  required: ['partition'],
  properties: {
    workers: { type: 'integer', minimum: 1, maximum: 8, default: 2 },
    partition: { type: 'string', pattern: '^[a-z]+$', title: 'Partition' },
    mode: { enum: ['fast', 'safe'], default: 'safe' },
    notes: { type: 'string', maxLength: 4000 },
    limits: {
      type: 'object',
      properties: { hours: { type: 'number', default: 1.5 }, user: { type: 'string' } },
      required: ['user'],
    },
    tags: { type: 'array', items: { type: 'string', maxLength: 3 } },
    anything: { oneOf: [{ type: 'string' }, { type: 'object' }] },
  },
};

describe('fieldsOf', () => {
  it('puts what must be given first and labels the rest by name', () => {
    expect(fieldsOf(schema).map((field) => [field.label, field.required])[0]).toEqual(['Partition', true]);
    expect(fieldsOf(schema).map((field) => field.key)).toEqual([
      'partition',
      'workers',
      'mode',
      'notes',
      'limits',
      'tags',
      'anything',
    ]);
  });

  it('gives paths below a group', () => {
    const group = schema.properties?.['limits'] ?? {};
    expect(fieldsOf(group, 'limits').map((field) => field.path)).toEqual(['limits.user', 'limits.hours']);
  });
});

describe('widgetOf', () => {
  it.each<[Schema, string]>([
    [{ type: 'string' }, 'text'],
    [{ type: 'string', maxLength: 4000 }, 'multiline'],
    [{ type: 'string', format: 'password' }, 'secret'],
    [{ type: ['string', 'null'] }, 'text'],
    [{ type: ['string', 'integer'] }, 'json'],
    [{ type: 'boolean' }, 'switch'],
    [{ enum: [1, 2] }, 'select'],
    [{ const: 'x' }, 'fixed'],
    [{ type: 'object' }, 'json'],
    [{ type: 'array', items: { type: 'object' } }, 'json'],
    [{ type: 'array', items: { type: 'integer' } }, 'list'],
    [{ type: 'array', items: { enum: ['a', 'b'] } }, 'choices'],
    [{ type: 'array', items: { enum: ['a', 1] } }, 'json'],
  ])('asks for %j by %s', (given, widget) => expect(widgetOf(given)).toBe(widget));
});

describe('initialValue', () => {
  it('holds the defaults, also of groups, and nothing else', () => {
    expect(initialValue(schema)).toEqual({ workers: 2, mode: 'safe', limits: { hours: 1.5 } });
  });

  it('does not share a default between two forms', () => {
    const withList: Schema = { default: { list: [1] } };
    expect(initialValue(withList)).not.toBe(withList.default);
  });
});

describe('validate', () => {
  it('accepts what the schema accepts', () => {
    expect(validate(schema, { partition: 'debug', workers: 3 }).size).toBe(0);
  });

  it('names the field that is missing, also in a group', () => {
    const errors = validate(schema, { limits: {} });
    expect(errors.get('partition')).toBe('This is required.');
    expect(errors.get('limits.user')).toBe('This is required.');
  });

  it.each<[object, string, string]>([
    [{ partition: 'debug', workers: 9 }, 'workers', 'Must be at most 8.'],
    [{ partition: 'debug', workers: 0 }, 'workers', 'Must be at least 1.'],
    [{ partition: 'UP' }, 'partition', 'Does not have the required form.'],
    [{ partition: 'debug', mode: 'odd' }, 'mode', 'Is not one of the choices.'],
    [{ partition: 'debug', workers: 'two' }, 'workers', 'Has the wrong type.'],
    [{ partition: 'debug', tags: ['long'] }, 'tags.0', 'Too long.'],
  ])('says what is wrong with %j', (value, path, message) => expect(validate(schema, value).get(path)).toBe(message));
});

it('knows which paths have a field', () => {
  expect(['workers', 'limits.user', 'limits', 'limits.none', 'tags.0'].map((path) => hasField(schema, path))).toEqual([
    true,
    true,
    true,
    false,
    false,
  ]);
});

it('takes an emptied key out', () => {
  expect(withKey({ a: 1, b: 2 }, 'a', undefined)).toEqual({ b: 2 });
});

it('leaves out a group that may be left out, with what it asks for', () => {
  const group = { type: 'object', required: ['policy'], properties: { policy: { type: 'string' } } } as const;
  expect(initialValue({ type: 'object', properties: { restart: group } })).toEqual({});
  expect(initialValue({ type: 'object', required: ['restart'], properties: { restart: group } })).toEqual({
    restart: {},
  });
  expect(validate({ type: 'object', properties: { restart: group } }, {}).size).toBe(0);
  expect([{}, { a: undefined }, { a: 0 }, [], null, ''].map(isEmpty)).toEqual([true, true, false, false, false, false]);
});
