// Forms from JSON Schema: the fields, their initial values, and their errors.
import { Validator } from '@cfworker/json-schema';
import type { OutputUnit, Schema as ValidatorSchema } from '@cfworker/json-schema';
import { labelOf } from './format';

/** The keywords that forms read; the validator also checks every other keyword of a schema. */
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

/** The kind of input for a value. `json` is the fallback where no field fits, such as for oneOf. */
export type Widget =
  | 'text'
  | 'multiline'
  | 'secret'
  | 'select'
  | 'number'
  | 'integer'
  | 'switch'
  | 'group'
  | 'list'
  | 'choices'
  | 'json'
  | 'fixed';

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

/** The longest text for one line, in characters; a schema that allows more gets a text area. */
const oneLine = 300;

/** Returns the value as a schema; a value that is not an object becomes an empty schema. */
export function asSchema(value: unknown): Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}

/** Returns the fields of an object schema: the required ones first, each group in the schema's order. */
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

/** Returns the widget for a value of the schema. */
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
  return schema.format === 'textarea' || schema.contentMediaType !== undefined || (long && !shaped)
    ? 'multiline'
    : 'text';
}

/** Returns the widget of a list: texts or numbers are typed one per line, given texts are chosen. */
function listWidget(schema: Schema): Widget {
  const items = schema.items;
  if (typeof items !== 'object') return 'json';
  if (items.enum !== undefined) return items.enum.every((each) => typeof each === 'string') ? 'choices' : 'json';
  return ['text', 'integer', 'number'].includes(widgetOf(items)) ? 'list' : 'json';
}

/** Returns the only type of a schema, apart from null; undefined when it has no type or several. */
export function typeOf(schema: Schema): string | undefined {
  const types = (typeof schema.type === 'string' ? [schema.type] : (schema.type ?? [])).filter(
    (type) => type !== 'null',
  );
  if (types.length > 1) return undefined;
  return types[0] ?? (schema.properties === undefined ? undefined : 'object');
}

/**
 * Returns the initial value of a form: the schema's defaults, and no value where it has no default. An optional group
 * is left out, so that its required fields are not reported as missing.
 */
export function initialValue(schema: Schema): unknown {
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return structuredClone(schema.default);
  if (widgetOf(schema) !== 'group') return undefined;
  const entries = Object.entries(schema.properties ?? {}).map(
    ([key, property]) => [key, initialValue(property)] as const,
  );
  return Object.fromEntries(
    entries.filter(
      ([key, value]) => value !== undefined && (schema.required?.includes(key) === true || !isEmpty(value)),
    ),
  );
}

/** Reports whether a value is an object without members. */
export function isEmpty(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every((each) => each === undefined)
  );
}

/** Reports whether a form of this schema has a field of the dotted path. */
export function hasField(schema: Schema, path: string): boolean {
  const [first, ...rest] = path.split('.');
  const field = fieldsOf(schema).find((each) => each.key === first);
  if (field === undefined) return false;
  return rest.length === 0 || (field.widget === 'group' && hasField(field.schema, rest.join('.')));
}

/** Returns the errors of a value, by the dotted path of the field; the root's errors have the path ''. */
export function validate(schema: Schema, value: unknown): ReadonlyMap<string, string> {
  const errors = new Map<string, string>();
  let outcome: { valid: boolean; errors: OutputUnit[] };
  try {
    outcome = new Validator(schema as ValidatorSchema, '2020-12', false).validate(value ?? {});
  } catch {
    return errors; // a schema that this validator cannot read is left to the server
  }
  for (const error of outcome.errors) {
    const place = complaint(error);
    if (place !== undefined && !errors.has(place.path)) errors.set(place.path, place.message);
  }
  return errors;
}

/** Keywords whose error only means that a value below is wrong. */
const containers: ReadonlySet<string> = new Set([
  'properties',
  'items',
  'prefixItems',
  'additionalProperties',
  'allOf',
  '$ref',
  'patternProperties',
]);

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

/** Returns the object with the value at the key; undefined removes the key, so that an emptied field is not sent. */
export function withKey(object: unknown, key: string, value: unknown): Record<string, unknown> {
  const copy: Record<string, unknown> = {
    ...(typeof object === 'object' && object !== null ? (object as Record<string, unknown>) : {}),
  };
  if (value === undefined) Reflect.deleteProperty(copy, key);
  else copy[key] = value;
  return copy;
}

/** Returns the value at the key; undefined when `object` is not an object. */
export function atKey(object: unknown, key: string): unknown {
  return typeof object === 'object' && object !== null ? (object as Record<string, unknown>)[key] : undefined;
}

/** Returns a schema's bounds in one line, such as `1 to 64` or `at most 40`. */
export function boundsOf(schema: Schema): string {
  const { minimum: min, maximum: max, minLength, maxLength } = schema;
  if (min !== undefined && max !== undefined) return `${min} to ${max}`;
  if (min !== undefined) return `at least ${min}`;
  if (max !== undefined) return `at most ${max}`;
  if (minLength !== undefined && minLength > 1 && maxLength !== undefined)
    return `${minLength} to ${maxLength} characters`;
  return '';
}
