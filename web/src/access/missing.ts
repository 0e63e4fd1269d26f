// What to explain when a request was refused for a missing permission.
import type { Problem } from '../api/errors';
import { recallProject } from '../lib/chosen';

/** The most keys that are explained at once. */
const maxKeys = 4;

/** Returns the permission keys that a refusal names as missing; empty for other kinds of refusal. */
export function missingKeys(problem: Problem): string[] {
  if (problem.code !== 'FORBIDDEN') return [];
  const keys = problem.reasons.filter((reason) => reason.code === 'PERMISSION_MISSING').map((reason) => reason.message);
  return [...new Set(keys)].slice(0, maxKeys);
}

/** Returns the object that a page is about, from its address; else the chosen project; null when there is none. */
export function objectOf(path: string, remembered: string | null = recallProject()): string | null {
  const found = /\/([a-z]{2,3}_[0-9a-z]{26})(?:\/|$)/.exec(path);
  return found?.[1] ?? (remembered === '' ? null : remembered);
}
