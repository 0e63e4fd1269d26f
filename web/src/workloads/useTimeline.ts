// A workload's timeline, followed live.
import { useEffect, useReducer, useRef } from 'react';
import { live } from '../api/client';
import type { Problem } from '../api/errors';
import { InstanceTimelineDocument } from '../generated/graphql';
import type { EventBitsFragment } from '../generated/graphql';
import { append, emptyTimeline } from '../lib/timeline';
import type { Timeline } from '../lib/timeline';

/** The timeline so far; `problem` is set when the feed has ended for good. */
export interface Followed {
  readonly timeline: Timeline<EventBitsFragment>;
  readonly problem: Problem | undefined;
}

type Change =
  { kind: 'events'; events: readonly EventBitsFragment[] } | { kind: 'restart' } | { kind: 'end'; problem: Problem };

/** Milliseconds for which events are collected before the page is drawn: a replay draws a few times, not a thousand. */
const gather = 60;

function reduce(state: Followed, change: Change): Followed {
  switch (change.kind) {
    case 'events':
      return { ...state, timeline: append(state.timeline, change.events) };
    case 'restart':
      return { timeline: emptyTimeline(), problem: undefined };
    case 'end':
      return { ...state, problem: change.problem };
  }
}

/** Follows the timeline from its beginning; it survives reconnects and restarts of the server. */
export function useTimeline(instanceId: string): Followed {
  const [state, dispatch] = useReducer(reduce, undefined, (): Followed => ({
    timeline: emptyTimeline(),
    problem: undefined,
  }));
  const waiting = useRef<EventBitsFragment[]>([]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = () => {
      timer = undefined;
      dispatch({ kind: 'events', events: waiting.current.splice(0) });
    };
    const stop = live.follow(
      InstanceTimelineDocument,
      { instanceId },
      {
        cursorOf: (data) => data.instanceTimeline.cursor,
        onData: (data) => {
          waiting.current.push(data.instanceTimeline);
          timer ??= setTimeout(flush, gather);
        },
        onRestart: () => {
          waiting.current = [];
          dispatch({ kind: 'restart' });
        },
        onEnd: (problem) => dispatch({ kind: 'end', problem }),
      },
    );
    return () => {
      clearTimeout(timer);
      waiting.current = [];
      stop();
      dispatch({ kind: 'restart' });
    };
  }, [instanceId]);
  return state;
}
