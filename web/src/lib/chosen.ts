// The project that the console shows, remembered across pages and visits.

/** The key in the browser's local storage. */
const storageKey = 'gpuaas-project';

/** The current project of this page, also where storage is off. */
let current = '';

/** Returns the current project's id, else the one chosen at an earlier visit; the empty string when there is none. */
export function recallProject(): string {
  if (current !== '') return current;
  try {
    return localStorage.getItem(storageKey) ?? '';
  } catch {
    return '';
  }
}

/** Remembers the current project, chosen by the person, or by the console if the person never chose. */
export function rememberProject(projectId: string): void {
  current = projectId;
  try {
    localStorage.setItem(storageKey, projectId);
  } catch {
    // storage may be off; the choice then lasts as long as the page
  }
}
