// The work of an app, such as jobs: rows that update, the output of one, followed live, and a button that stops one.
import { Button, Switch } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { useSession } from '../api/session';
import type { Workload } from '../lifecycle/workload';
import { DeniedButton } from '../ui/Denied';
import { ProblemNotice } from '../ui/Problem';
import { Ago, Card, CopyButton, Empty, Loading } from '../ui/parts';
import { ActionItem } from './ActionsCard';
import { StopDialog } from './StopDialog';
import { save } from '../lib/save';
import { actionNamed, columnsOf, inputWith, textAt } from './work';
import type { Work, WorkColumn, WorkRow } from './work';
import { listEvery, useOutput, useWork } from './useWork';
import type { Listed } from './useWork';

interface Props {
  workload: Workload;
  work: Work;
  /** The piece of work whose output is shown. */
  chosen: string | undefined;
  onChoose: (id: string | undefined) => void;
}

/** The tab: the form that begins work, the list, and the output of the chosen one. */
export function WorkTab({ workload, work, chosen, onChoose }: Props) {
  const { can } = useSession();
  const action = actionNamed(workload, work.list.action);
  const allowed = action !== undefined && can(action.permissionKey);
  const running = workload.status === 'RUNNING';
  const listed = useWork(workload, work, allowed && running);
  if (action === undefined) return null;
  const shown = listed.rows?.find((row) => row.id === chosen);
  return (
    <div className="stack" data-work={work.kind}>
      <Begin workload={workload} work={work} onBegun={onChoose} refresh={listed.refresh} />
      <Card title={work.title} label={work.title} pad={false} aside={<Fresh listed={listed} watched={running} />}>
        {!allowed ? (
          <div className="card-body">
            <DeniedButton label={action.displayName} permissionKey={action.permissionKey} objectId={workload.id} />
          </div>
        ) : (
          <List {...{ workload, work, listed, chosen, onChoose }} columns={columnsOf(work, action)} running={running} />
        )}
      </Card>
      {chosen !== undefined && work.output && allowed && (
        <OutputCard
          key={chosen}
          workload={workload}
          work={work}
          id={chosen}
          row={shown}
          onClose={() => onChoose(undefined)}
        />
      )}
    </div>
  );
}

/** When the list was read, and a button that reads it now. */
function Fresh({ listed, watched }: { listed: Listed; watched: boolean }) {
  if (!watched) return <span className="small faint">Read while the workload runs</span>;
  return (
    <span className="row small faint">
      <span>
        {listed.at === null ? 'Reading …' : <Ago at={listed.at} />}, every {listEvery / 1000} s
      </span>
      <Button size="compact-xs" variant="subtle" onClick={listed.refresh}>
        Read now
      </Button>
    </span>
  );
}

/** The form that begins a piece of work; the new piece is then chosen. */
function Begin({
  workload,
  work,
  onBegun,
  refresh,
}: {
  workload: Workload;
  work: Work;
  onBegun: (id: string) => void;
  refresh: () => void;
}) {
  const [open, setOpen] = useState(false);
  const submit = work.submit;
  const action = actionNamed(workload, submit?.action);
  if (action === undefined || !submit) return null;
  return (
    <section className="card" aria-label={action.displayName}>
      <ActionItem
        instanceId={workload.id}
        projectId={null}
        action={action}
        running={workload.status === 'RUNNING'}
        open={open}
        onToggle={() => setOpen(!open)}
        onAnswer={(output) => {
          const id = textAt(output, submit.id);
          if (id === '') return false;
          setOpen(false);
          refresh();
          onBegun(id);
          return true;
        }}
      />
    </section>
  );
}

function List({
  workload,
  work,
  listed,
  chosen,
  onChoose,
  columns,
  running,
}: Props & { listed: Listed; columns: readonly WorkColumn[]; running: boolean }) {
  const [stopping, setStopping] = useState<string>();
  const stop = actionNamed(workload, work.cancel?.action);
  const { rows, problem } = listed;
  const reading = rows === undefined && problem === undefined && running;
  return (
    <>
      {problem !== undefined && (
        <div className="card-body">
          <ProblemNotice problem={problem} />
        </div>
      )}
      {reading && <Loading lines={3} />}
      {rows?.length === 0 && <Empty icon="operations" title={`No ${work.title.toLowerCase()}`} />}
      {rows !== undefined && rows.length > 0 && (
        <div className="table-box" role="region" tabIndex={0} aria-label={`${work.title} now`}>
          <table className="table dense work" aria-label={work.title}>
            <thead>
              <tr>
                {columns.map((column) => (
                  <th key={column.key} scope="col">
                    {column.title}
                  </th>
                ))}
                <th scope="col">Actions</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id} data-work-id={row.id} data-state={row.state} data-chosen={row.id === chosen}>
                  {row.cells.map((text, at) => (
                    <td key={columns[at]?.key} className={text.length <= 40 ? 'short' : undefined}>
                      {columns[at]?.key === work.list.state ? <State row={row} /> : text}
                    </td>
                  ))}
                  <td className="short">
                    <span className="row">
                      {work.output && (
                        <Button size="compact-xs" variant="default" onClick={() => onChoose(row.id)}>
                          Output
                          <span className="hidden-visually">
                            {' '}
                            of {work.kind} {row.id}
                          </span>
                        </Button>
                      )}
                      {stop !== undefined && !row.over && running && (
                        <Stop workload={workload} label={`${work.kind} ${row.id}`} permissionKey={stop.permissionKey}>
                          {() => setStopping(row.id)}
                        </Stop>
                      )}
                    </span>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {stopping !== undefined && stop !== undefined && work.cancel && (
        <StopDialog
          label={`Cancel ${work.kind} ${stopping}`}
          instanceId={workload.id}
          action={stop.name}
          input={inputWith(stop, work.cancel.id, stopping)}
          onClose={() => setStopping(undefined)}
          onDone={listed.refresh}
        />
      )}
    </>
  );
}

function State({ row }: { row: WorkRow }) {
  return <span className={`tag${row.over ? '' : ' live'}`}>{row.state}</span>;
}

/** The button that stops a row's work, or the permission that it needs. */
function Stop({
  workload,
  label,
  permissionKey,
  children,
}: {
  workload: Workload;
  label: string;
  permissionKey: string;
  children: () => void;
}) {
  const { can } = useSession();
  if (!can(permissionKey))
    return <DeniedButton label="Cancel" permissionKey={permissionKey} objectId={workload.id} size="compact-xs" />;
  return (
    <Button size="compact-xs" variant="default" color="red" onClick={children}>
      Cancel<span className="hidden-visually"> {label}</span>
    </Button>
  );
}

/** What one piece of work printed, followed until it has ended. */
function OutputCard({
  workload,
  work,
  id,
  row,
  onClose,
}: {
  workload: Workload;
  work: Work;
  id: string;
  row: WorkRow | undefined;
  onClose: () => void;
}) {
  const [follow, setFollow] = useState(true);
  const over = row?.over === true || workload.status !== 'RUNNING';
  const { text, problem } = useOutput(workload, work, id, follow, over);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (follow && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [text, follow]);
  const name = `${work.kind} ${id}`;
  return (
    <Card
      title={
        <span className="row">
          Output of {name} {row !== undefined && <State row={row} />}
        </span>
      }
      label={`Output of ${name}`}
      aside={
        <span className="row">
          {!over && (
            <Switch
              size="xs"
              label="Follow"
              checked={follow}
              onChange={(event) => setFollow(event.currentTarget.checked)}
            />
          )}
          <CopyButton value={text ?? ''} what="the output" />
          <Button
            size="compact-xs"
            variant="subtle"
            onClick={() => save(`${work.kind}-${id}.txt`, text ?? '')}
            disabled={text === undefined}
          >
            Download
          </Button>
          <Button size="compact-xs" variant="subtle" onClick={onClose}>
            Close
          </Button>
        </span>
      }
    >
      <div className="stack-s">
        {problem !== undefined && <ProblemNotice problem={problem} />}
        {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls is reached by the keyboard */}
        <div ref={box} className="log-lines mono" role="log" aria-label={`Output of ${name}`} tabIndex={0}>
          {text === undefined ? (
            <span className="faint">{problem === undefined ? 'Reading …' : 'It cannot be read now.'}</span>
          ) : text === '' ? (
            <span className="faint">{over ? 'It printed nothing.' : 'Nothing was printed yet.'}</span>
          ) : (
            text
          )}
        </div>
      </div>
    </Card>
  );
}
