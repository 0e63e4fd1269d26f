// Results as tables: an action's answer is JSON; a list of similar objects in it is easier to read in columns.

import { fullTime } from './format';

/** A list of objects found in an answer, ready for columns. */
export interface Table {
  /** Where it was found: the property's name, or empty when the answer itself is the list. */
  readonly name: string;
  readonly columns: readonly string[];
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/** The most rows and columns of a table. */
export const maxRows = 500;
const maxColumns = 24;

/**
 * Returns the tables in an answer: the answer itself, or each of its properties, where it is a list of objects. Columns
 * that are empty in every row are left out.
 */
export function tablesOf(output: unknown): Table[] {
  const direct = tableOf('', output);
  if (direct !== undefined) return [direct];
  if (!isRecord(output)) return [];
  return Object.entries(output)
    .map(([name, value]) => tableOf(name, value))
    .filter((table) => table !== undefined);
}

/** Returns the properties of an answer that are plain values, for a list of terms. */
export function factsOf(output: unknown): [string, string][] {
  if (!isRecord(output)) return [];
  return Object.entries(output)
    .filter(([, value]) => !isNested(value))
    .map(([key, value]) => [key, cellText(value)]);
}

/**
 * Returns a cell's text: plain values as they are, instants in the reader's time zone, lists of texts one per line,
 * other nested values as JSON.
 */
export function cellText(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string')
    return Array.isArray(value) && value.every((each) => typeof each === 'string')
      ? value.join('\n')
      : JSON.stringify(value);
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(value) ? fullTime(value) : value;
}

/** Reports whether a program wrote a value, shown in a fixed width: several lines, or an output by its name. */
export function isOutput(name: string, text: string): boolean {
  return text.includes('\n') || /(output|stdout|stderr|script|logs?|lines)$/i.test(name);
}

function tableOf(name: string, value: unknown): Table | undefined {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isRecord)) return undefined;
  const columns: string[] = [];
  for (const row of value) {
    for (const [key, cell] of Object.entries(row))
      if (!columns.includes(key) && cellText(cell) !== '') columns.push(key);
  }
  return { name, columns: columns.slice(0, maxColumns), rows: value.slice(0, maxRows) };
}

function isNested(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
