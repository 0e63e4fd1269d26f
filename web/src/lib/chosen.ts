// The project that the person has chosen, remembered across pages and visits.

/** The key in the browser's local storage. */
const storageKey = 'gpuaas-project';

/** Returns the chosen project's id; the empty string when none was chosen, or storage is off. */
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
