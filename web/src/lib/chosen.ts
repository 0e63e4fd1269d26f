// Which project the person has chosen, over pages and visits.

/** Where it is remembered. */
const storageKey = 'gpuaas-project';

/** The chosen project's id; the empty string when none was, or storage is off. */
export function recallProject(): string {
  try {
    return localStorage.getItem(storageKey) ?? '';
  } catch {
    return '';
  }
}

/** Remembers the chosen project. */
export function rememberProject(projectId: string): void {
  try {
    localStorage.setItem(storageKey, projectId);
  } catch {
    // storage may be off; the choice then lasts as long as the page
  }
}
