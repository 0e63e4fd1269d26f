import { expect, it } from 'vitest';
import { date, daysOf } from './days';

const month = { from: '2026-02-01T00:00:00Z', to: '2026-03-01T00:00:00Z', currency: 'EUR' };
const share = (key: string, amount: string, currency = 'EUR') => ({ key, amount, currency });

it('has every day of the month, those without costs too', () => {
  const { days, dearest } = daysOf(month, [share('2026-02-03', '1.5'), share('2026-02-28', '6')]);
  expect(days).toHaveLength(28);
  expect(days.filter((each) => each.height > 0).map((each) => [each.key, each.height])).toEqual([
    ['2026-02-03', 25],
    ['2026-02-28', 100],
  ]);
  expect(days.map((each) => each.label).filter((each) => each !== '')).toEqual(['1', '5', '10', '15', '20', '25']);
  expect(dearest?.key).toBe('2026-02-28');
  expect(date('2026-02-28')).toBe('28 February');
});

it('leaves other currencies out, and has no dearest day of none', () => {
  expect(daysOf(month, [share('2026-02-03', '900', 'USD')]).dearest).toBeUndefined();
  const { days, dearest } = daysOf(month, [share('2026-02-03', '900', 'USD'), share('2026-02-03', '1')]);
  expect(days[2]).toMatchObject({ amount: '1', height: 100 });
  expect(dearest?.currency).toBe('EUR');
});
