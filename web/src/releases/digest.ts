// SHA-256 as the platform writes it.

/** The digest of a text's UTF-8 bytes, `sha256:…`; undefined where the browser has no cryptography: outside of a secure context. */
export async function digestOf(text: string): Promise<string | undefined> {
  const subtle = (crypto as { subtle?: SubtleCrypto }).subtle;
  if (subtle === undefined) return undefined;
  const sum = await subtle.digest('SHA-256', new TextEncoder().encode(text));
  return `sha256:${Array.from(new Uint8Array(sum), (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
