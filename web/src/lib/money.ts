// Amounts of money as people read them. They are decimal texts from end to end: no floating point.

/** The amount with its currency: trailing zeros beyond two places are left out. */
export function amount(text: string, currency: string): string {
  return `${places(text)} ${currency}`;
}

/** The text for capacity without a price in the price book. */
export const noPrice = 'No price set';

/** What an hour of some capacity costs, in words: a sum for each currency, and how much of it has no price. */
export function hourlyWord(
  rented: readonly { readonly hourlyCost: { readonly amount: string; readonly currency: string } | null }[],
): string {
  const sums = new Map<string, bigint>();
  for (const { hourlyCost } of rented)
    if (hourlyCost !== null)
      sums.set(hourlyCost.currency, (sums.get(hourlyCost.currency) ?? 0n) + millionths(hourlyCost.amount));
  const said = [...sums].map(([currency, sum]) => {
    const digits = String(sum).padStart(7, '0');
    return `${amount(`${digits.slice(0, -6)}.${digits.slice(-6)}`, currency)} an hour`;
  });
  const unpriced = rented.filter(({ hourlyCost }) => hourlyCost === null).length;
  if (unpriced > 0) said.push(said.length === 0 ? noPrice : `no price set for ${unpriced} of it`);
  return said.join(', ');
}

/** An amount of at most six places in millionths. */
function millionths(text: string): bigint {
  const [whole = '0', rest = ''] = text.split('.');
  return BigInt(whole + rest.slice(0, 6).padEnd(6, '0'));
}

/** A difference in words: how much more or less it costs. */
export function difference(text: string, currency: string): string {
  return text.startsWith('-') ? `${amount(text.slice(1), currency)} less` : `${amount(text, currency)} more`;
}

/** An estimate with its currency: in two places, halves up. */
export function about(text: string, currency: string): string {
  const [whole = '0', rest = ''] = text.split('.');
  const cents = BigInt(whole + rest.padEnd(2, '0').slice(0, 2)) + (/^..[5-9]/.test(rest) ? 1n : 0n);
  const digits = String(cents).padStart(3, '0');
  return amount(`${digits.slice(0, -2)}.${digits.slice(-2)}`, currency);
}

/** A decimal text with at least two places, and no zeros after those. */
function places(text: string): string {
  const [whole = '0', rest = ''] = text.split('.');
  const kept = rest.replace(/0+$/, '').padEnd(2, '0');
  return `${whole.replace(/\B(?=(\d{3})+$)/g, '\u202f')}.${kept}`;
}

/** The percent of a bar's height that an amount has beside the largest; from digits alone, and at least 2. */
export function portion(text: string, all: readonly string[]): number {
  const least = 6;
  const units = (each: string): bigint => {
    const [whole = '0', rest = ''] = each.replace('-', '').split('.');
    return BigInt(whole + rest.slice(0, least).padEnd(least, '0'));
  };
  const most = all.map(units).reduce((a, b) => (b > a ? b : a), 0n);
  return most === 0n ? 2 : Math.max(Number((units(text) * 100n) / most), 2);
}
