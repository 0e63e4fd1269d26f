// Keys that make a repeat of a submission harmless.

/** The key of the last attempt, and what was submitted with it. */
export interface Attempt {
  readonly key: string;
  readonly fingerprint: string;
}

/**
 * The attempt for this input: the last one's key when the input is the same, so that a retry after a lost answer
 * does nothing twice; a new key when the input changed, as one key never goes with two inputs.
 */
export function attemptFor(previous: Attempt | undefined, input: unknown, mint: () => string = newKey): Attempt {
  const fingerprint = JSON.stringify(input);
  return previous?.fingerprint === fingerprint ? previous : { key: mint(), fingerprint };
}

/** A random key. randomUUID exists in secure contexts only; a console reached by plain HTTP has to do without. */
export function newKey(): string {
  const source = globalThis.crypto as Partial<Crypto> & Pick<Crypto, 'getRandomValues'>;
  if (source.randomUUID !== undefined) return source.randomUUID();
  return Array.from(source.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
