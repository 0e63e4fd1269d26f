// Results as tables: an action's answer is JSON; a list of like objects in it reads better in columns.

/** A list of objects found in an answer, ready for columns. */
export interface Table {
  /** Where it was found: the property's name, or empty when the answer itself is the list. */
  readonly name: string;
  readonly columns: readonly string[];
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/** Most rows and columns shown as a table. */
export const maxRows = 500;
const maxColumns = 12;

/** The tables in an answer: the answer itself, or each of its properties, where it is a list of objects. */
export function tablesOf(output: unknown): Table[] {
  const direct = tableOf('', output);
  if (direct !== undefined) return [direct];
  if (!isRecord(output)) return [];
  return Object.entries(output).map(([name, value]) => tableOf(name, value)).filter((table) => table !== undefined);
}

/** The properties of an answer that are plain values, for a list of terms. */
export function factsOf(output: unknown): [string, string][] {
  if (!isRecord(output)) return [];
  return Object.entries(output).filter(([, value]) => !isNested(value)).map(([key, value]) => [key, cellText(value)]);
}

/** A cell's text: plain values as they are, nested ones as JSON, nothing as nothing. */
export function cellText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function tableOf(name: string, value: unknown): Table | undefined {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isRecord)) return undefined;
  const columns: string[] = [];
  for (const row of value) {
    for (const key of Object.keys(row)) if (!columns.includes(key)) columns.push(key);
  }
  return { name, columns: columns.slice(0, maxColumns), rows: value.slice(0, maxRows) };
}

function isNested(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
