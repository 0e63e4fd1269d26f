// What the processes of a workload's members print: one member at a time, followed live, filtered by process, downloaded.
import { Button, Select, Switch } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { useSession } from '../api/session';
import type { Problem } from '../api/errors';
import type { MemberBitsFragment } from '../generated/graphql';
import { memberName } from '../lifecycle/MemberDialogs';
import type { Workload } from '../lifecycle/workload';
import { DeniedButton } from '../ui/Denied';
import { ProblemNotice } from '../ui/Problem';
import { Card } from '../ui/parts';
import { useMembers } from './useMembers';
import { gapText, textOf } from './logLines';
import type { LogLine } from './logLines';
import { save } from '../lib/save';
import { readAll, useLogs } from './useLogs';

/** The card. Nothing is read until it is opened, since the audit records every opening. */
export function LogsCard({
  workload,
  of: shown,
  onChoose,
}: {
  workload: Workload;
  /** The member whose logs are shown. */
  of: string | undefined;
  onChoose: (memberId: string | undefined) => void;
}) {
  const { members } = useMembers(workload);
  const { can } = useSession();
  const key = `${workload.permissionFamily}.member.logs`;
  const current = members.filter((member) => member.status !== 'REMOVED');
  const choice = current.length === 0 ? members : current;
  const member = members.find((each) => each.id === shown);
  return (
    <Card
      title="Logs"
      label="Logs"
      aside={
        can(key) ? (
          <Select
            size="xs"
            aria-label="Whose logs"
            placeholder="Choose a member"
            data={choice.map((each) => ({ value: each.id, label: memberName(each) }))}
            value={shown ?? null}
            onChange={(value) => onChoose(value ?? undefined)}
          />
        ) : (
          <DeniedButton label="Read logs" permissionKey={key} objectId={workload.id} />
        )
      }
    >
      {member === undefined || !can(key) ? (
        <p className="small faint">
          {choice.length === 0
            ? 'There are no members yet.'
            : 'What the processes of a member print, as it is printed. Choose a member; the opening is recorded in the audit log.'}
        </p>
      ) : (
        <MemberLogs key={member.id} member={member} />
      )}
    </Card>
  );
}

/** A member's logs with their controls. */
export function MemberLogs({ member }: { member: MemberBitsFragment }) {
  const [process, setProcess] = useState<string | null>(null);
  const [follow, setFollow] = useState(true);
  const [known, setKnown] = useState<readonly string[]>([]);
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const download = async () => {
    setBusy(true);
    const { lines, problem: failed } = await readAll(member.id, process);
    setBusy(false);
    setProblem(failed);
    if (failed === undefined) save(`${memberName(member).replaceAll(/[^A-Za-z0-9]+/g, '-')}.log`, textOf(lines));
  };
  return (
    <div className="stack-s" data-logs={member.id}>
      <div className="row">
        <Select
          size="xs"
          clearable
          aria-label="Process"
          placeholder="All processes"
          data={[...known]}
          value={process}
          onChange={setProcess}
        />
        <Switch
          size="xs"
          label="Follow"
          checked={follow}
          onChange={(event) => setFollow(event.currentTarget.checked)}
        />
        <Button size="compact-xs" variant="subtle" loading={busy} onClick={() => void download()}>
          Download as text
        </Button>
      </div>
      {problem !== undefined && <ProblemNotice problem={problem} />}
      <Lines key={process ?? ''} id={member.id} process={process} follow={follow} known={known} onKnown={setKnown} />
    </div>
  );
}

function Lines({
  id,
  process,
  follow,
  known,
  onKnown,
}: {
  id: string;
  process: string | null;
  follow: boolean;
  known: readonly string[];
  onKnown: (names: readonly string[]) => void;
}) {
  const { lines, over, problem } = useLogs(id, process, follow);
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const named = [...new Set([...known, ...lines.map((line) => line.process)])].sort();
    if (named.length > known.length) onKnown(named);
  }, [lines, known, onKnown]);
  useEffect(() => {
    if (follow && end.current !== null) end.current.scrollTop = end.current.scrollHeight;
  }, [lines, follow]);
  return (
    <>
      {problem !== undefined && <ProblemNotice problem={problem} />}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls is reached by the keyboard */}
      <div ref={end} className="log-lines mono" role="log" aria-label="Lines" tabIndex={0}>
        {lines.length === 0 && problem === undefined && <div className="faint">Nothing was printed yet.</div>}
        {lines.map((line) => (
          <Line key={line.cursor} line={line} />
        ))}
        {over && problem === undefined && (
          <div className="faint">The member was removed: these are its last lines.</div>
        )}
      </div>
    </>
  );
}

function Line({ line }: { line: LogLine }) {
  if (line.gap !== null)
    return (
      <div className="gap">
        {line.process}: {gapText(line.gap)}
      </div>
    );
  return (
    <div {...(line.stream === 'STDERR' ? { className: 'err' } : {})}>
      <time dateTime={line.at ?? ''} title={line.at ?? ''}>
        {(line.at ?? '').slice(11, 19)}
      </time>{' '}
      <span className="faint">{line.process}</span> {line.text}
    </div>
  );
}
