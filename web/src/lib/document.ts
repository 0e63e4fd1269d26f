// The text of a policy document.

/** The editor's initial content: a document without rules. */
export const startingDocument = {};

/** Parses a document, or returns why the text is not a document; the platform checks the rules themselves. */
export function parseDocument(text: string): { readonly document: unknown; readonly wrong: string | undefined } {
  try {
    const document: unknown = JSON.parse(text === '' ? '{}' : text);
    if (typeof document !== 'object' || document === null || Array.isArray(document))
      return { document: {}, wrong: 'The document must be one JSON object.' };
    return { document, wrong: undefined };
  } catch {
    return { document: {}, wrong: 'This is not JSON.' };
  }
}
