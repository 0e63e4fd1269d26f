// SHA-256 digests in the platform's notation.

/**
 * Returns the digest of a text's UTF-8 bytes, `sha256:…`; undefined outside of a secure context, where the browser has
 * no cryptography.
 */
export async function digestOf(text: string): Promise<string | undefined> {
  const subtle = (crypto as { subtle?: SubtleCrypto }).subtle;
  if (subtle === undefined) return undefined;
  const sum = await subtle.digest('SHA-256', new TextEncoder().encode(text));
  return `sha256:${Array.from(new Uint8Array(sum), (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
