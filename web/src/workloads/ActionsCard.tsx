// The actions of a workload's app: a form from each action's input schema, and the result.
import { Button, Checkbox, SegmentedControl } from '@mantine/core';
import { useMemo, useState } from 'react';
import type { SyntheticEvent } from 'react';
import { placeReasons } from '../api/errors';
import { useSubmission } from '../api/hooks';
import { useSession } from '../api/session';
import { useDraft } from '../api/useDraft';
import { InvokeActionDocument } from '../generated/graphql';
import type { InvokeActionMutation } from '../generated/graphql';
import { SchemaForm } from '../ui/SchemaForm';
import { labelOf } from '../lib/format';
import { asSchema, fieldsOf, hasField, initialValue, validate } from '../lib/schema';
import { cellText, factsOf, isOutput, tablesOf } from '../lib/table';
import type { Table } from '../lib/table';
import { useAnswer } from '../ui/Denied';
import { Icon } from '../ui/Icons';
import { ProblemNotice } from '../ui/Problem';
import { Card, Copy, Fact, Json } from '../ui/parts';
import type { Workload } from '../lifecycle/workload';

type Action = Workload['actions'][number];

/** The card with the actions; nothing for apps without actions, and once the workload is released. */
export function ActionsCard({ workload }: { workload: Workload }) {
  const [open, setOpen] = useState<string>();
  if (workload.actions.length === 0 || workload.releasedAt !== null) return null;
  const running = workload.status === 'RUNNING';
  return (
    <Card
      title="Actions"
      pad={false}
      label="Actions"
      aside={!running && <span className="small faint">Available while it runs</span>}
    >
      <div className="action-list">
        {workload.actions.map((action) => (
          <ActionItem
            key={action.name}
            instanceId={workload.id}
            projectId={null}
            action={action}
            running={running}
            open={open === action.name}
            onToggle={() => setOpen(open === action.name ? undefined : action.name)}
          />
        ))}
      </div>
    </Card>
  );
}

interface ItemProps {
  instanceId: string;
  projectId: string | null;
  action: Action;
  running: boolean;
  open: boolean;
  onToggle: () => void;
  /** Takes an answer's output; returns true where it need not be shown here. */
  onAnswer?: (output: unknown) => boolean;
}

/** One action; `projectId` names the requesting project when it is attached to a shared control plane. */
export function ActionItem({ instanceId, projectId, action, running, open, onToggle, onAnswer }: ItemProps) {
  const { can } = useSession();
  const allowed = can(action.permissionKey);
  return (
    <div className="action-item" data-action={action.name}>
      <button type="button" className="action-toggle" aria-expanded={open} onClick={onToggle}>
        <Icon name="right" size={14} className="turn" />
        <span className="grow">
          <span className="strong">{action.displayName}</span> <span className="small faint mono">{action.name}</span>
        </span>
        {action.risk !== 'READ' && (
          <span className="tag">{action.risk === 'DESTRUCTIVE' ? 'can lose work' : 'changes state'}</span>
        )}
      </button>
      {open && (
        <ActionForm
          instanceId={instanceId}
          projectId={projectId}
          action={action}
          runnable={running && allowed}
          allowed={allowed}
          onAnswer={onAnswer}
        />
      )}
    </div>
  );
}

function ActionForm({
  instanceId,
  projectId,
  action,
  runnable,
  allowed,
  onAnswer,
}: {
  instanceId: string;
  projectId: string | null;
  action: Action;
  runnable: boolean;
  allowed: boolean;
  onAnswer: ItemProps['onAnswer'] | undefined;
}) {
  const schema = useMemo(() => asSchema(action.inputSchema), [action.inputSchema]);
  const [input, setInput] = useDraft<unknown>(`${instanceId} ${action.name}`, () => initialValue(schema) ?? {});
  const [tried, setTried] = useState(false);
  const [sure, setSure] = useState(false);
  const [answer, setAnswer] = useState<InvokeActionMutation['invokeAction']>();
  const { submit, problem, busy } = useSubmission(InvokeActionDocument);
  const own = validate(schema, input);
  const placed = placeReasons(problem?.reasons ?? [], (path) => hasField(schema, path));
  const errors = tried ? new Map([...placed.fields, ...own]) : new Map<string, string>();
  const destructive = action.risk === 'DESTRUCTIVE';
  const send = async (event: SyntheticEvent) => {
    event.preventDefault();
    setTried(true);
    if (own.size > 0) return;
    const given = await submit({ instanceId, projectId, action: action.name, input });
    if (given !== undefined && onAnswer?.(given.invokeAction.output) !== true) setAnswer(given.invokeAction);
    setSure(false);
  };
  return (
    <form className="action-body" onSubmit={(event) => void send(event)} noValidate aria-label={action.displayName}>
      {fieldsOf(schema).length > 0 && <SchemaForm schema={schema} value={input} onChange={setInput} errors={errors} />}
      {destructive && (
        <Checkbox
          label="I know that this can lose work"
          checked={sure}
          onChange={(event) => setSure(event.currentTarget.checked)}
        />
      )}
      <div className="row">
        <Button
          type="submit"
          loading={busy}
          disabled={!runnable || (destructive && !sure)}
          {...(destructive ? { color: 'red' } : {})}
        >
          {action.risk === 'READ' ? 'Read' : 'Run'}
        </Button>
        {!allowed && <Whom permissionKey={action.permissionKey} objectId={instanceId} />}
      </div>
      {problem !== undefined && <ProblemNotice problem={problem} reasons={placed.rest} />}
      {answer !== undefined && <ActionResult answer={answer} />}
    </form>
  );
}

/** The missing permission, and who can give it. */
function Whom({ permissionKey, objectId }: { permissionKey: string; objectId: string }) {
  return <span className="small faint">{useAnswer(permissionKey, objectId)}</span>;
}

/** An answer as facts and tables where it has that shape, otherwise as JSON. */
export function ActionResult({ answer }: { answer: InvokeActionMutation['invokeAction'] }) {
  const tables = tablesOf(answer.output);
  const facts = factsOf(answer.output);
  const shaped = tables.length + facts.length > 0;
  const [view, setView] = useState('view');
  return (
    <div className="stack-s" role="region" aria-label="Result" data-result={answer.action}>
      <div className="row" style={{ justifyContent: 'space-between' }}>
        <h3>Result</h3>
        {shaped && (
          <SegmentedControl
            size="xs"
            aria-label="How the result is shown"
            value={view}
            onChange={setView}
            data={[
              { value: 'view', label: 'Table' },
              { value: 'json', label: 'JSON' },
            ]}
          />
        )}
      </div>
      {shaped && view === 'view' ? (
        <>
          {facts.length > 0 && (
            <dl className="facts">
              {facts.map(([key, value]) => (
                <Fact key={key} term={labelOf(key)}>
                  <span className={isOutput(key, value) ? 'mono output' : undefined}>{value}</span>
                </Fact>
              ))}
            </dl>
          )}
          {tables.map((table) => (
            <ResultTable key={table.name} table={table} />
          ))}
        </>
      ) : (
        <Json value={answer.output} label="Result as JSON" />
      )}
      <div className="small faint">
        Correlation id <Copy value={answer.correlationId} what="correlation id" />
      </div>
    </div>
  );
}

function ResultTable({ table }: { table: Table }) {
  return (
    // A box that scrolls must be reachable with the keyboard.
    <div
      className="table-box card"
      style={{ boxShadow: 'none' }}
      role="region"
      tabIndex={0}
      aria-label={table.name === '' ? 'Result' : labelOf(table.name)}
    >
      <table className="table dense" aria-label={table.name === '' ? 'Result' : labelOf(table.name)}>
        <thead>
          <tr>
            {table.columns.map((column) => (
              <th key={column} scope="col">
                {labelOf(column)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, at) => (
            <tr key={at}>
              {table.columns.map((column) => (
                <Cell key={column} name={column} text={cellText(row[column])} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A cell: short values stay on one line, long ones wrap; a program's output keeps its lines and columns. */
function Cell({ name, text }: { name: string; text: string }) {
  if (isOutput(name, text)) return <td className="mono output">{text}</td>;
  return <td className={text.length <= 40 ? 'short' : undefined}>{text}</td>;
}
