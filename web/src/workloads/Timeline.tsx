// The live timeline, oldest first, scrolled to its end as long as the reader is at the end.
import { Button, Switch } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { useLiveStatus } from '../api/hooks';
import type { EventBitsFragment } from '../generated/graphql';
import { clockTime, fullTime, plural } from '../lib/format';
import { Notice, ProblemNotice } from '../ui/Problem';
import { Status } from '../ui/Status';
import type { Tone } from '../ui/Status';
import { Card, Empty, Loading } from '../ui/parts';
import { eventName, eventTone, isMinor } from './events';
import type { Followed } from './useTimeline';

/** The most events drawn at once; older ones are drawn on request. */
const drawn = 200;

/** The card with the timeline. */
export function TimelineCard({ followed }: { followed: Followed }) {
  const { timeline, problem } = followed;
  const [minor, setMinor] = useState(true);
  const [older, setOlder] = useState(0);
  const box = useRef<HTMLOListElement>(null);
  const pinned = useRef(true);
  const events = minor ? timeline.events : timeline.events.filter((event) => !isMinor(event.type));
  const visible = events.slice(Math.max(0, events.length - drawn - older));
  const hiddenCount = events.length - visible.length + timeline.dropped;
  useEffect(() => {
    if (pinned.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [timeline.lastSeq, minor]);
  const onScroll = (event: { currentTarget: HTMLElement }) => {
    const list = event.currentTarget;
    pinned.current = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  };
  return (
    <Card
      title="Timeline"
      pad={false}
      label="Timeline"
      className="timeline-card"
      aside={
        <span className="row">
          <LiveMark />
          <Switch
            size="xs"
            label="Progress"
            checked={minor}
            onChange={(event) => setMinor(event.currentTarget.checked)}
          />
        </span>
      }
    >
      {problem !== undefined && (
        <div className="card-body">
          <ProblemNotice problem={problem} />
        </div>
      )}
      {timeline.missing > 0 && (
        <div className="card-body">
          <Notice tone="warn" icon="warn" role="alert">
            {plural(timeline.missing, 'event')} did not arrive. Load the page again to read the timeline from its
            beginning.
          </Notice>
        </div>
      )}
      {timeline.events.length === 0 && problem === undefined && <TimelineStart />}
      {hiddenCount > 0 && events.length > visible.length && (
        <div className="card-body tight">
          <Button size="compact-xs" variant="default" onClick={() => setOlder(older + drawn)}>
            Show {Math.min(drawn, events.length - visible.length)} earlier
          </Button>
        </div>
      )}
      {/* A box that scrolls must be reachable with the keyboard. */}
      <ol
        className="tl"
        ref={box}
        onScroll={onScroll}
        tabIndex={0}
        aria-label="Events, oldest first"
        data-last-seq={timeline.lastSeq}
        data-missing={timeline.missing}
      >
        {visible.map((event) => (
          <TimelineRow key={event.seq} event={event} />
        ))}
      </ol>
      <p className="hidden-visually" role="status">
        {timeline.events.at(-1)?.message}
      </p>
    </Card>
  );
}

function TimelineStart() {
  const { state } = useLiveStatus();
  return state === 'open' ? <Empty icon="clock" title="Nothing has happened yet" /> : <Loading lines={5} />;
}

function LiveMark() {
  const { state, asOf } = useLiveStatus();
  if (asOf !== undefined)
    return <Status state="OFFLINE" bare label={`As of ${clockTime(new Date(asOf).toISOString())}`} />;
  return state === 'open' ? (
    <Status state="RUNNING" bare label="Live" />
  ) : (
    <Status state="STARTING" bare label="Connecting" />
  );
}

function TimelineRow({ event }: { event: EventBitsFragment }) {
  const tone: Tone = eventTone(event.type);
  const minor = isMinor(event.type);
  const detailed = typeof event.payload === 'object' && event.payload !== null && Object.keys(event.payload).length > 0;
  return (
    <li className={`tone-${tone} ${minor ? '' : 'major'}`} data-seq={event.seq} data-type={event.type}>
      <time dateTime={event.occurredAt} title={fullTime(event.occurredAt)}>
        {clockTime(event.occurredAt)}
      </time>
      <span className="knot">
        <i />
      </span>
      <div>
        <div className="what said">{event.message === '' ? eventName(event.type) : event.message}</div>
        {!minor && <div className="kind">{event.type}</div>}
        {detailed && !minor && (
          <details>
            <summary>Details</summary>
            <pre className="json">{JSON.stringify(event.payload, null, 2)}</pre>
          </details>
        )}
      </div>
    </li>
  );
}
