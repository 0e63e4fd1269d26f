// Labels as a person edits them: one `name=value` per line.

/** The most labels of a member. */
export const maxLabels = 32;

const word = /^[A-Za-z0-9._-]{1,63}$/;

/** Returns the labels of a member; values other than texts are left out. */
export function labelsOf(value: unknown): Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
  );
}

/** Returns the labels as text, in the order of their names. */
export function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.keys(labels)
    .sort()
    .map((name) => `${name}=${labels[name] ?? ''}`)
    .join('\n');
}

/** Returns the labels in the text, or the error. */
export function readLabels(text: string): { labels: Record<string, string> } | { wrong: string } {
  const labels: Record<string, string> = {};
  for (const line of text
    .split('\n')
    .map((each) => each.trim())
    .filter(Boolean)) {
    const at = line.indexOf('=');
    const name = line.slice(0, at).trim();
    const value = line.slice(at + 1).trim();
    if (at < 1 || !word.test(name))
      return {
        wrong: `“${line}” must be name=value; a name has 1 to 63 letters, digits, dots, dashes and underscores.`,
      };
    if (!word.test(value))
      return { wrong: `The value of ${name} must have 1 to 63 letters, digits, dots, dashes and underscores.` };
    if (name in labels) return { wrong: `${name} is given twice.` };
    labels[name] = value;
  }
  if (Object.keys(labels).length > maxLabels) return { wrong: `At most ${maxLabels} labels.` };
  return { labels };
}
