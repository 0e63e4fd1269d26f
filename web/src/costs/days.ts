// The days of a month, each with what it cost: a day without costs is one too.
import { portion } from '../lib/money';

interface Share {
  readonly key: string;
  readonly amount: string;
  readonly currency: string;
}

/** A day of the chart. */
export interface Day {
  /** The date, as in 2026-11-05. */
  readonly key: string;
  readonly amount: string;
  /** Percents of the dearest day's height; 0 for a day without costs. */
  readonly height: number;
  /** The day of the month where it is written: the first, and each fifth. */
  readonly label: string;
}

const dayLong = 86_400_000;

/** Returns the month's days, and the first of those that cost the most; other currencies than the month's are left out. */
export function daysOf(
  month: { readonly from: string; readonly to: string; readonly currency: string },
  shares: readonly Share[],
): { days: Day[]; dearest: Share | undefined } {
  const own = shares.filter((each) => each.currency === month.currency);
  const amounts = own.map((each) => each.amount);
  const byDay = new Map(own.map((each) => [each.key, each]));
  const days: Day[] = [];
  for (let at = Date.parse(month.from); at < Date.parse(month.to); at += dayLong) {
    const key = new Date(at).toISOString().slice(0, 10);
    const share = byDay.get(key);
    const number = Number(key.slice(8));
    days.push({
      key,
      amount: share?.amount ?? '0',
      height: share === undefined ? 0 : portion(share.amount, amounts),
      label: number === 1 || number % 5 === 0 ? String(number) : '',
    });
  }
  return { days, dearest: own.find((each) => portion(each.amount, amounts) === 100) };
}

/** A date of the chart in words. */
export function date(key: string): string {
  return new Date(`${key}T00:00:00Z`).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', timeZone: 'UTC' });
}
