// How long roles, keys and entitlements last.

/** The lifetimes to choose from, in hours; empty for no expiry. */
export const lifetimes = [
  { value: '', label: 'No expiry' },
  { value: '1', label: '1 hour' },
  { value: '8', label: '8 hours' },
  { value: '24', label: '1 day' },
  { value: '168', label: '7 days' },
  { value: '720', label: '30 days' },
  { value: '2160', label: '90 days' },
  { value: '8760', label: '1 year' },
];

/** Returns the instant so many hours from now; null for no expiry. */
export function endOf(hours: string, now: number = Date.now()): string | null {
  const count = Number(hours);
  return hours === '' || Number.isNaN(count) ? null : new Date(now + count * 3_600_000).toISOString();
}
