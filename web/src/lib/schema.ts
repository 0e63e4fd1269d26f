// Forms from JSON Schema: what fields there are, what stands in them at first, and what is wrong with them.
import { Validator } from '@cfworker/json-schema';
import type { OutputUnit, Schema as ValidatorSchema } from '@cfworker/json-schema';
import { labelOf } from './format';

/** The keywords that forms read; whatever else a schema says is still checked by the validator. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema | boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly additionalProperties?: Schema | boolean;
  readonly contentMediaType?: string;
  readonly writeOnly?: boolean;
  readonly oneOf?: readonly Schema[];
}

/** How a value is asked for. `json` is the way out for what no field fits, such as oneOf. */
export type Widget = 'text' | 'multiline' | 'secret' | 'select' | 'number' | 'integer' | 'switch' | 'group' | 'list' | 'choices' | 'json' | 'fixed';

/** One field of a form. */
export interface Field {
  /** The property's name. */
  readonly key: string;
  /** The dotted path from the form's root. */
  readonly path: string;
  readonly label: string;
  readonly help: string;
  readonly required: boolean;
  readonly widget: Widget;
  readonly schema: Schema;
}

/** Longest text that fits one line; a schema that allows more gets an area. */
const oneLine = 300;

/** The value as a schema; anything but an object asks for nothing. */
export function asSchema(value: unknown): Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value) : {};
}

/** The fields of an object schema in its own order, those that must be given first. */
export function fieldsOf(schema: Schema, parent = ''): Field[] {
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties ?? {}).map(([key, property]) => ({
    key,
    path: parent === '' ? key : `${parent}.${key}`,
    label: property.title ?? labelOf(key),
    help: property.description ?? '',
    required: required.has(key),
    widget: widgetOf(property),
    schema: property,
  }));
  return [...fields.filter((field) => field.required), ...fields.filter((field) => !field.required)];
}

/** Which widget asks for a value of the schema. */
export function widgetOf(schema: Schema): Widget {
  if (schema.const !== undefined) return 'fixed';
  if (schema.enum !== undefined) return 'select';
  switch (typeOf(schema)) {
    case 'string':
      return textWidget(schema);
    case 'integer':
      return 'integer';
    case 'number':
      return 'number';
    case 'boolean':
      return 'switch';
    case 'object':
      return Object.keys(schema.properties ?? {}).length > 0 ? 'group' : 'json';
    case 'array':
      return listWidget(schema);
    default:
      return 'json';
  }
}

function textWidget(schema: Schema): Widget {
  if (schema.writeOnly === true || schema.format === 'password') return 'secret';
  const long = schema.maxLength !== undefined && schema.maxLength > oneLine;
  const shaped = schema.pattern !== undefined || (schema.format !== undefined && schema.format !== 'textarea');
  return schema.format === 'textarea' || schema.contentMediaType !== undefined || (long && !shaped) ? 'multiline' : 'text';
}

/** A list of texts or numbers is asked for one a line, a list of given texts by choosing. */
function listWidget(schema: Schema): Widget {
  const items = schema.items;
  if (typeof items !== 'object') return 'json';
  if (items.enum !== undefined) return items.enum.every((each) => typeof each === 'string') ? 'choices' : 'json';
  return ['text', 'integer', 'number'].includes(widgetOf(items)) ? 'list' : 'json';
}

/** The one type of a schema, null aside; undefined when it has none or several. */
export function typeOf(schema: Schema): string | undefined {
  const types = (typeof schema.type === 'string' ? [schema.type] : (schema.type ?? [])).filter((type) => type !== 'null');
  if (types.length > 1) return undefined;
  return types[0] ?? (schema.properties === undefined ? undefined : 'object');
}

/** What stands in the form at first: the schema's defaults, and nothing where it names none; a group that may be left out is, so that what it asks for is not missed. */
export function initialValue(schema: Schema): unknown {
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return structuredClone(schema.default);
  if (widgetOf(schema) !== 'group') return undefined;
  const entries = Object.entries(schema.properties ?? {}).map(([key, property]) => [key, initialValue(property)] as const);
  return Object.fromEntries(entries.filter(([key, value]) => value !== undefined && (schema.required?.includes(key) === true || !isEmpty(value))));
}

/** Whether a value is an object without members. */
export function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every((each) => each === undefined);
}

/** Whether a form of this schema has a field of the dotted path. */
export function hasField(schema: Schema, path: string): boolean {
  const [first, ...rest] = path.split('.');
  const field = fieldsOf(schema).find((each) => each.key === first);
  if (field === undefined) return false;
  return rest.length === 0 || (field.widget === 'group' && hasField(field.schema, rest.join('.')));
}

/** What is wrong with a value, by the dotted path of the field; the root's complaints have the path ''. */
export function validate(schema: Schema, value: unknown): ReadonlyMap<string, string> {
  const errors = new Map<string, string>();
  let outcome: { valid: boolean; errors: OutputUnit[] };
  try {
    outcome = new Validator(schema as ValidatorSchema, '2020-12', false).validate(value ?? {});
  } catch {
    return errors; // a schema that this validator cannot read is the server's to check
  }
  for (const error of outcome.errors) {
    const place = complaint(error);
    if (place !== undefined && !errors.has(place.path)) errors.set(place.path, place.message);
  }
  return errors;
}

/** Keywords whose error only says that something below is wrong. */
const containers: ReadonlySet<string> = new Set(['properties', 'items', 'prefixItems', 'additionalProperties', 'allOf', '$ref', 'patternProperties']);

function complaint(error: OutputUnit): { path: string; message: string } | undefined {
  const path = error.instanceLocation.replace(/^#\/?/, '').split('/').filter(Boolean).map(unescapePointer).join('.');
  if (error.keyword === 'required') {
    const missing = /"([^"]+)"/.exec(error.error)?.[1] ?? '';
    return { path: [path, missing].filter(Boolean).join('.'), message: 'This is required.' };
  }
  if (containers.has(error.keyword)) return undefined;
  return { path, message: messageOf(error) };
}

function messageOf(error: OutputUnit): string {
  const number = /(-?\d+(?:\.\d+)?)[^\d]*$/.exec(error.error)?.[1] ?? '';
  switch (error.keyword) {
    case 'minimum':
      return `Must be at least ${number}.`;
    case 'maximum':
      return `Must be at most ${number}.`;
    case 'minLength':
      return 'Too short.';
    case 'maxLength':
      return 'Too long.';
    case 'pattern':
      return 'Does not have the required form.';
    case 'format':
      return 'Does not have the required format.';
    case 'enum':
      return 'Is not one of the choices.';
    case 'type':
      return 'Has the wrong type.';
    default:
      return error.error;
  }
}

function unescapePointer(part: string): string {
  return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
}

/** The object with the value at the key; undefined takes the key out, so that an emptied field is not sent. */
export function withKey(object: unknown, key: string, value: unknown): Record<string, unknown> {
  const copy: Record<string, unknown> = { ...(typeof object === 'object' && object !== null ? (object as Record<string, unknown>) : {}) };
  if (value === undefined) Reflect.deleteProperty(copy, key);
  else copy[key] = value;
  return copy;
}

/** The value at the key of something that may be no object. */
export function atKey(object: unknown, key: string): unknown {
  return typeof object === 'object' && object !== null ? (object as Record<string, unknown>)[key] : undefined;
}

/** One line of what a schema bounds, such as `1 to 64` or `at most 40 characters`. */
export function boundsOf(schema: Schema): string {
  const { minimum: min, maximum: max, minLength, maxLength } = schema;
  if (min !== undefined && max !== undefined) return `${min} to ${max}`;
  if (min !== undefined) return `at least ${min}`;
  if (max !== undefined) return `at most ${max}`;
  if (minLength !== undefined && minLength > 1 && maxLength !== undefined) return `${minLength} to ${maxLength} characters`;
  return '';
}
