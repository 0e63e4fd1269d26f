// Texts for numbers, times and enum values.

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** Returns how long ago an instant was, in one unit, such as `3 min ago`. */
export function ago(instant: string, now: number): string {
  const passed = now - Date.parse(instant);
  if (Number.isNaN(passed)) return '';
  if (passed < 5_000) return 'just now';
  if (passed < minute) return `${Math.floor(passed / 1000)} s ago`;
  if (passed < hour) return `${Math.floor(passed / minute)} min ago`;
  if (passed < day) return `${Math.floor(passed / hour)} h ago`;
  return `${Math.floor(passed / day)} d ago`;
}

/** Returns a duration, given in milliseconds, in its two largest units, such as `2 min 5 s`. */
export function duration(milliseconds: number): string {
  if (!Number.isFinite(milliseconds) || milliseconds < 0) return '';
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** Returns the time between two instants; the second is now when null. */
export function between(from: string | null, to: string | null, now: number): string {
  if (from === null) return '';
  return duration((to === null ? now : Date.parse(to)) - Date.parse(from));
}

/** Returns an instant in the reader's time zone and locale. */
export function fullTime(instant: string): string {
  const date = new Date(instant);
  return Number.isNaN(date.getTime())
    ? instant
    : date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}

/** Returns the clock time of an instant, with seconds. */
export function clockTime(instant: string): string {
  const date = new Date(instant);
  return Number.isNaN(date.getTime()) ? instant : date.toLocaleTimeString(undefined, { hour12: false });
}

/** Returns a number of bytes in binary units. */
export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value >= 10 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit] ?? ''}`;
}

/** Returns an enum's value as words: `INSTANCE_CREATE` becomes `Instance create`. */
export function words(value: string): string {
  const lower = value.replaceAll(/[_-]+/g, ' ').replaceAll('.', ' ').trim().toLowerCase();
  return lower.charAt(0).toUpperCase() + lower.slice(1);
}

/** Returns the display name of an operation's kind; a kind that the console does not know is shown by its name. */
export function operationName(kind: string): string {
  switch (kind) {
    case 'INSTANCE_CREATE':
      return 'Launch';
    case 'INSTANCE_DECOMMISSION':
      return 'Decommission';
    case 'ALLOCATION_RELEASE':
      return 'Release of capacity';
    case 'INSTANCE_UPGRADE':
      return 'Upgrade';
    case 'INSTANCE_ROLLBACK':
      return 'Rollback';
    case 'MEMBERS_ADD':
      return 'Addition of members';
    case 'MEMBER_DRAIN':
      return 'Drain';
    case 'MEMBER_CORDON':
      return 'Cordon';
    case 'MEMBER_UNCORDON':
      return 'Return to service';
    case 'MEMBER_LABEL':
      return 'Labels';
    case 'MEMBER_REMOVE':
      return 'Removal';
    case 'MEMBER_REPLACE':
      return 'Replacement';
    case 'MEMBER_RECOVER':
      return 'Recovery';
    default:
      return words(kind);
  }
}

/** Returns a key such as `partitionName` or `node_count` as a label. */
export function labelOf(key: string): string {
  return words(key.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2'));
}

/** Returns a digest or id, shortened in the middle. */
export function shorten(value: string, head = 14, tail = 6): string {
  return value.length <= head + tail + 1 ? value : `${value.slice(0, head)}…${value.slice(-tail)}`;
}

/** Returns a count with its noun: `1 member`, `2 members`. */
export function plural(count: number, singular: string, many = `${singular}s`): string {
  return `${count} ${count === 1 ? singular : many}`;
}
