/** Returns an exact decimal with its thousands apart: `1234567.5` becomes `1 234 567.5`, with narrow spaces. */
export function quantityWord(decimal: string): string {
  const [whole = '', rest] = decimal.split('.');
  const apart = whole.replaceAll(/\B(?=(\d{3})+$)/g, '\u202f');
  return rest === undefined ? apart : `${apart}.${rest}`;
}
