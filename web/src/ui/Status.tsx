// States in five tones. A tone is never the only sign: each state also has a shape and a label.
import { Tooltip } from '@mantine/core';
import type { ReactNode } from 'react';
import { words } from '../lib/format';

/** good: as desired. busy: in progress. warn: ending, or degraded. bad: failed. idle: ended, or unknown. */
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'idle';

/** The tone of every state that the console shows; a state means the same on every object. */
const tones: Readonly<Record<string, Tone>> = {
  CREATED: 'busy',
  STARTING: 'busy',
  RUNNING: 'good',
  STOPPING: 'warn',
  STOPPED: 'idle',
  FAILED: 'bad',
  REQUESTED: 'busy',
  READY: 'good',
  RELEASING: 'warn',
  RELEASED: 'idle',
  PENDING: 'idle',
  JOINING: 'busy',
  ACTIVE: 'good',
  DRAINING: 'warn',
  DRAINED: 'idle',
  REMOVING: 'warn',
  REMOVED: 'idle',
  HEALTHY: 'good',
  DEGRADED: 'warn',
  UNHEALTHY: 'bad',
  UNKNOWN: 'idle',
  GOOD: 'good',
  WARNING: 'warn',
  BAD: 'bad',
  ONLINE: 'good',
  OFFLINE: 'bad',
  RETIRED: 'idle',
  DEPRECATED: 'warn',
  DRAFT: 'idle',
  STAGED: 'busy',
  CANARY: 'warn',
  SUCCEEDED: 'good',
  WAITING: 'warn',
  CANCELING: 'warn',
  COMPENSATING: 'warn',
  CANCELED: 'idle',
  SKIPPED: 'idle',
  UNDOING: 'warn',
  UNDONE: 'idle',
  TIMED_OUT: 'bad',
  DELETING: 'warn',
  DELETED: 'idle',
  PASSED: 'good',
  NOT_KNOWN: 'idle',
  OPEN: 'warn',
  ACCEPTED: 'busy',
  CLOSED: 'good',
};

/** Returns the tone of a state; `operation` because a running operation is busy but a running workload is good. */
export function toneOf(state: string, operation = false): Tone {
  if (operation && state === 'RUNNING') return 'busy';
  return tones[state] ?? 'idle';
}

/** A tone's shape: idle is a ring, good a disc, busy a half disc, warn a square, bad a cross. */
function Shape({ tone }: { tone: Tone }) {
  return (
    <svg
      width="9"
      height="9"
      viewBox="0 0 10 10"
      aria-hidden="true"
      focusable="false"
      className={tone === 'busy' ? 'pulse' : undefined}
    >
      {tone === 'good' && <circle cx="5" cy="5" r="4.2" fill="currentColor" />}
      {tone === 'busy' && (
        <>
          <circle cx="5" cy="5" r="4" fill="none" stroke="currentColor" strokeWidth="1.6" />
          <path d="M5 1a4 4 0 0 1 0 8Z" fill="currentColor" />
        </>
      )}
      {tone === 'warn' && <rect x="1.2" y="1.2" width="7.6" height="7.6" rx="1.6" fill="currentColor" />}
      {tone === 'bad' && (
        <path d="m1.5 1.5 7 7M8.5 1.5l-7 7" stroke="currentColor" strokeWidth="2.2" strokeLinecap="round" />
      )}
      {tone === 'idle' && <circle cx="5" cy="5" r="3.7" fill="none" stroke="currentColor" strokeWidth="1.7" />}
    </svg>
  );
}

/** A state as a chip. `bare` omits the background, for health beside a status. */
export function Status({
  state,
  operation = false,
  bare = false,
  title,
  label,
}: {
  state: string;
  operation?: boolean;
  bare?: boolean;
  title?: string;
  label?: ReactNode;
}) {
  const chip = (
    <span className={`chip tone-${toneOf(state, operation)}${bare ? ' bare' : ''}`} data-state={state}>
      <Shape tone={toneOf(state, operation)} />
      {label ?? words(state)}
    </span>
  );
  return title === undefined || title === '' ? chip : <Tooltip label={title}>{chip}</Tooltip>;
}

/** The health that the adapter reports, beside a status; a dash for an object that has ended. */
export function HealthMark({ health, message, over = false }: { health: string; message: string; over?: boolean }) {
  if (over) return <span className="faint">—</span>;
  const label = health === 'UNKNOWN' ? 'Not reported' : words(health);
  return <Status state={health} bare title={message} label={label} />;
}
