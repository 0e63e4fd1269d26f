// The work of an app, as its manifest declares it: pure rules over the answers of its actions.
import { cellText } from '../lib/table';
import type { Workload } from '../lifecycle/workload';

/** The declaration. */
export type Work = NonNullable<Workload['manifest']['work']>;

type Action = Workload['actions'][number];

/** One piece of work. */
export interface WorkRow {
  readonly id: string;
  readonly state: string;
  /** Whether its state is final. */
  readonly over: boolean;
  /** The texts of the columns, in their order. */
  readonly cells: readonly string[];
}

/** A column of the table. */
export interface WorkColumn {
  readonly key: string;
  readonly title: string;
}

/** Returns the rows of an answer of the list's action; rows without an id are left out, since nothing can be done with them. */
export function rowsOf({ list }: Work, output: unknown): WorkRow[] {
  const items = recordOf(output)[list.items];
  if (!Array.isArray(items)) return [];
  return items.flatMap((item: unknown) => {
    const row = recordOf(item);
    const id = cellText(row[list.id]);
    const state = cellText(row[list.state]);
    const over = list.ended.includes(state);
    return id === '' ? [] : [{ id, state, over, cells: list.columns.map((column) => cellText(row[column])) }];
  });
}

/** Returns the columns with the titles that the action's schema gives them; the state is among them. */
export function columnsOf({ list }: Work, action: Pick<Action, 'outputSchema'>): WorkColumn[] {
  const items = recordOf(recordOf(recordOf(action.outputSchema)['properties'])[list.items]);
  const fields = recordOf(recordOf(items['items'])['properties']);
  return list.columns.map((key) => {
    const title = recordOf(fields[key])['title'];
    return { key, title: typeof title === 'string' ? title : key };
  });
}

/** Returns an action's input with an id, in the type that its schema wants. */
export function inputWith(action: Pick<Action, 'inputSchema'>, field: string, id: string): Record<string, unknown> {
  const properties = recordOf(recordOf(action.inputSchema)['properties']);
  return { [field]: recordOf(properties[field])['type'] === 'integer' ? Number(id) : id };
}

/** Returns a text field of an answer; empty where it has none. */
export function textAt(output: unknown, field: string): string {
  return cellText(recordOf(output)[field]);
}

/** Returns an action of the workload by its name. */
export function actionNamed(workload: Pick<Workload, 'actions'>, name: string | undefined): Action | undefined {
  return name === undefined ? undefined : workload.actions.find((each) => each.name === name);
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
