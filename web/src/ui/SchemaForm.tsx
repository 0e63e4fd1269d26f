// A form from a JSON Schema: one field for each property, groups for objects, JSON where nothing else fits.
import { JsonInput, MultiSelect, NumberInput, PasswordInput, Select, Switch, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { atKey, boundsOf, fieldsOf, isEmpty, withKey } from '../lib/schema';
import type { Field, Schema } from '../lib/schema';

/** The properties of a form. */
export interface SchemaFormProps {
  readonly schema: Schema;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  /** The error messages, by dotted path from the form's root. */
  readonly errors: ReadonlyMap<string, string>;
  /** The dotted path of this part of the form; undefined for the root. */
  readonly path?: string;
  /** Whether this part is currently omitted, so that none of its fields is required. */
  readonly idle?: boolean;
}

/** The fields of an object schema. */
export function SchemaForm({ schema, value, onChange, errors, path = '', idle = false }: SchemaFormProps) {
  const fields = fieldsOf(schema, path).map((field) => ({ ...field, required: field.required && !idle }));
  if (fields.length === 0) return <p className="soft small">Nothing to set.</p>;
  return (
    <div className="form-grid">
      {fields.map((field) => (
        <SchemaField
          key={field.key}
          field={field}
          value={atKey(value, field.key)}
          errors={errors}
          onChange={(next) => onChange(withKey(value, field.key, next))}
        />
      ))}
    </div>
  );
}

interface FieldProps {
  readonly field: Field;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly errors: ReadonlyMap<string, string>;
}

function SchemaField({ field, value, onChange, errors }: FieldProps) {
  const error = errorOf(errors, field);
  const common = {
    label: field.label,
    description: help(field),
    required: field.required,
    withAsterisk: field.required,
    error,
    'data-path': field.path,
  };
  switch (field.widget) {
    case 'group':
      return (
        <fieldset className="group wide">
          <legend>{field.label}</legend>
          {field.help !== '' && (
            <p className="small faint" style={{ marginBottom: 10 }}>
              {field.help}
            </p>
          )}
          <SchemaForm
            schema={field.schema}
            value={value ?? {}}
            onChange={(next) => onChange(isEmpty(next) && !field.required ? undefined : next)}
            errors={errors}
            path={field.path}
            idle={value === undefined && !field.required}
          />
        </fieldset>
      );
    case 'select':
      return <Choice field={field} value={value} onChange={onChange} common={common} />;
    case 'switch':
      return (
        <Switch
          mt="xs"
          label={field.label}
          description={help(field)}
          error={error}
          checked={value === true}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
      );
    case 'integer':
    case 'number':
      return (
        <NumberInput
          {...common}
          allowDecimal={field.widget === 'number'}
          min={field.schema.minimum}
          max={field.schema.maximum}
          step={field.schema.multipleOf ?? 1}
          clampBehavior="none"
          placeholder={example(field)}
          value={typeof value === 'number' ? value : ''}
          onChange={(next) => onChange(next === '' ? undefined : Number(next))}
        />
      );
    case 'choices':
      return <Choices field={field} value={value} onChange={onChange} common={common} />;
    case 'list':
      return <LineList field={field} value={value} onChange={onChange} common={common} />;
    case 'json':
      return <Raw value={value} onChange={onChange} common={common} />;
    case 'fixed':
      return <TextInput {...common} required={false} readOnly value={String(field.schema.const)} />;
    default:
      return <Words field={field} value={value} onChange={onChange} common={common} />;
  }
}

interface Common {
  label: string;
  description: string | undefined;
  required: boolean;
  withAsterisk: boolean;
  error: string | undefined;
  'data-path': string;
}
type PartProps = Pick<FieldProps, 'field' | 'value' | 'onChange'> & { common: Common };

/** Text on one line, on several, or hidden. An emptied text is removed from the value, not sent as an empty string. */
function Words({ field, value, onChange, common }: PartProps) {
  const props = {
    ...common,
    maxLength: field.schema.maxLength,
    placeholder: example(field),
    spellCheck: false,
    value: typeof value === 'string' ? value : '',
    onChange: (event: { currentTarget: { value: string } }) =>
      onChange(event.currentTarget.value === '' ? undefined : event.currentTarget.value),
  };
  if (field.widget === 'secret') return <PasswordInput {...props} autoComplete="new-password" />;
  if (field.widget === 'multiline')
    return (
      <Textarea
        {...props}
        className="wide"
        autosize
        minRows={4}
        maxRows={16}
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 12.5 } }}
      />
    );
  return <TextInput {...props} />;
}

/** One of several values, which may be of any type. */
function Choice({ field, value, onChange, common }: PartProps) {
  const choices = field.schema.enum ?? [];
  const at = choices.findIndex((choice) => JSON.stringify(choice) === JSON.stringify(value));
  return (
    <Select
      {...common}
      data={choices.map((choice, index) => ({
        value: String(index),
        label: typeof choice === 'string' ? choice : JSON.stringify(choice),
      }))}
      clearable={!field.required && field.schema.default === undefined}
      placeholder="Choose"
      value={at < 0 ? null : String(at)}
      onChange={(next) => onChange(next === null ? undefined : choices[Number(next)])}
    />
  );
}

/** Any of several texts. */
function Choices({ field, value, onChange, common }: PartProps) {
  const items = typeof field.schema.items === 'object' ? field.schema.items : {};
  const chosen = Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
  return (
    <MultiSelect
      {...common}
      data={(items.enum ?? []).filter((each) => typeof each === 'string')}
      clearable
      maxValues={field.schema.maxItems ?? 100}
      placeholder={chosen.length === 0 ? 'Any' : ''}
      value={chosen}
      onChange={(next) => onChange(next.length === 0 ? undefined : next)}
    />
  );
}

/** A list of texts or numbers, one per line. */
function LineList({ field, value, onChange, common }: PartProps) {
  const items = typeof field.schema.items === 'object' ? field.schema.items : {};
  const numeric = items.type === 'integer' || items.type === 'number';
  const [text, setText] = useState(Array.isArray(value) ? value.map(String).join('\n') : '');
  const change = (next: string) => {
    setText(next);
    const lines = next
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
    onChange(
      lines.length === 0
        ? undefined
        : lines.map((line) => (numeric && !Number.isNaN(Number(line)) ? Number(line) : line)),
    );
  };
  return (
    <Textarea
      {...common}
      description={[common.description, 'One per line'].filter(Boolean).join('. ')}
      autosize
      minRows={2}
      maxRows={10}
      value={text}
      onChange={(event) => change(event.currentTarget.value)}
    />
  );
}

/**
 * Any JSON. Text that does not parse is kept as text, so that the schema or the server refuses it: the input is never
 * changed silently.
 */
function Raw({ value, onChange, common }: Pick<PartProps, 'value' | 'onChange' | 'common'>) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2));
  const [broken, setBroken] = useState(false);
  const change = (next: string) => {
    setText(next);
    if (next.trim() === '') {
      setBroken(false);
      onChange(undefined);
      return;
    }
    try {
      onChange(JSON.parse(next));
      setBroken(false);
    } catch {
      setBroken(true);
      onChange(next);
    }
  };
  return (
    <JsonInput
      {...common}
      className="wide"
      description={[common.description, 'JSON'].filter(Boolean).join('. ')}
      error={broken ? 'This is not valid JSON.' : common.error}
      formatOnBlur
      autosize
      minRows={3}
      maxRows={16}
      value={text}
      onChange={change}
    />
  );
}

/** Returns the error of a field, or of a value below it that has no field of its own. */
function errorOf(errors: ReadonlyMap<string, string>, field: Field): string | undefined {
  const own = errors.get(field.path);
  if (own !== undefined || field.widget === 'group') return own;
  for (const [path, message] of errors)
    if (path.startsWith(`${field.path}.`)) return `${path.slice(field.path.length + 1)}: ${message}`;
  return undefined;
}

function help(field: Field): string | undefined {
  const bounds = boundsOf(field.schema);
  const text = [field.help, bounds === '' || field.help.includes(bounds) ? '' : bounds]
    .filter((part) => part !== '')
    .join(' · ');
  return text === '' ? undefined : text;
}

function example(field: Field): string | undefined {
  const first = field.schema.examples?.[0];
  return typeof first === 'string' || typeof first === 'number' ? String(first) : undefined;
}
