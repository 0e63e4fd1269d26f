// A member's logs, followed live.
import { useEffect, useRef, useState } from 'react';
import { live } from '../api/client';
import type { Problem } from '../api/errors';
import { ask } from '../api/hooks';
import type { Answer } from '../api/hooks';
import { MemberLogsDocument, MemberLogsLiveDocument } from '../generated/graphql';
import type { MemberLogsQuery } from '../generated/graphql';
import { grow } from './logLines';
import type { LogLine } from './logLines';

/** Milliseconds for which lines are collected before the page is drawn. */
const gather = 80;

/** The most pages of 1,000 lines in a file. */
const maxPages = 100;

/** The state of the reading so far. */
export interface Logs {
  readonly lines: readonly LogLine[];
  /** Whether the feed has completed: the member was removed. */
  readonly over: boolean;
  readonly problem: Problem | undefined;
}

const empty: Logs = { lines: [], over: false, problem: undefined };

/**
 * Follows a member's logs while `follow`; every line arrives once, over reconnects and pauses. A component that shows
 * another member or process gets another `key`.
 */
export function useLogs(memberId: string, process: string | null, follow: boolean): Logs {
  const [logs, setLogs] = useState(empty);
  const last = useRef<string | null>(null);
  useEffect(() => {
    if (!follow) return undefined;
    let waiting: LogLine[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = () => {
      timer = undefined;
      const more = waiting;
      waiting = [];
      last.current = more.at(-1)?.cursor ?? last.current;
      setLogs((before) => ({ ...before, lines: grow(before.lines, more) }));
    };
    const stop = live.follow(
      MemberLogsLiveDocument,
      { memberId, process, after: last.current },
      {
        cursorOf: (data) => data.memberLogs.cursor,
        onData: (data) => {
          waiting.push(data.memberLogs);
          timer ??= setTimeout(flush, gather);
        },
        onRestart: () => {
          waiting = [];
          last.current = null;
          setLogs(empty);
        },
        onEnd: (problem) => setLogs((before) => ({ ...before, over: true, problem })),
        completes: true,
        onComplete: () => setLogs((before) => ({ ...before, over: true })),
      },
    );
    return () => {
      stop();
      if (timer !== undefined) {
        clearTimeout(timer);
        flush();
      }
    };
  }, [memberId, process, follow]);
  return logs;
}

/** Reads everything that is kept of a member's logs. */
export async function readAll(
  id: string,
  process: string | null,
): Promise<{ lines: readonly LogLine[]; problem: Problem | undefined }> {
  const lines: LogLine[] = [];
  let after: string | null = null;
  for (let page = 0; page < maxPages; page++) {
    const answer: Answer<MemberLogsQuery> = await ask(MemberLogsDocument, {
      id,
      process,
      after,
      tail: after === null ? 0 : null,
    });
    if (answer.data === undefined) return { lines, problem: answer.problem };
    const page: MemberLogsQuery['member']['logs'] = answer.data.member.logs;
    lines.push(...page.lines);
    after = page.cursor;
    if (!page.more) break;
  }
  return { lines, problem: undefined };
}
