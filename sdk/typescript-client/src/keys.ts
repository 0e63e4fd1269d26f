// Idempotency keys, which make a retry of a submission harmless.

/** Attempt is the key of the last attempt, and what was submitted with it. */
export interface Attempt {
  readonly key: string;
  readonly fingerprint: string;
}

/**
 * attemptFor returns the attempt for this input: with the last key when the input is the same, so that a retry after a
 * lost answer does nothing twice; with a new key when the input changed, because a key is for one input.
 */
export function attemptFor(previous: Attempt | undefined, input: unknown, mint: () => string = newKey): Attempt {
  const fingerprint = JSON.stringify(input);
  return previous?.fingerprint === fingerprint ? previous : { key: mint(), fingerprint };
}

/** newKey returns a random key. randomUUID exists in secure contexts only, so a page over plain HTTP cannot use it. */
export function newKey(): string {
  const source = globalThis.crypto as Partial<Crypto> & Pick<Crypto, 'getRandomValues'>;
  if (source.randomUUID !== undefined) return source.randomUUID();
  return Array.from(source.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
