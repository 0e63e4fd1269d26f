import { expect, test } from 'vitest';
import { about, amount, difference, hourlyWord, portion } from './money';

test('amounts have two places at least, and as many as they need', () => {
  expect(amount('2', 'EUR')).toBe('2.00 EUR');
  expect(amount('2.400000', 'EUR')).toBe('2.40 EUR');
  expect(amount('0.000005', 'USD')).toBe('0.000005 USD');
  expect(amount('1234567.5', 'EUR')).toBe('1\u202f234\u202f567.50 EUR');
});

test('an estimate has two places', () => {
  expect(about('415.184667', 'EUR')).toBe('415.18 EUR');
  expect(about('0.995', 'EUR')).toBe('1.00 EUR');
  expect(about('0.004', 'EUR')).toBe('0.00 EUR');
  expect(about('7', 'EUR')).toBe('7.00 EUR');
  expect(about('999999.5', 'EUR')).toBe('999\u202f999.50 EUR');
});

test('what is rented is summed by currency, and what has no price is never zero', () => {
  const of = (text: string, currency = 'EUR') => ({ hourlyCost: { amount: text, currency } });
  expect(hourlyWord([of('2.400000'), of('0.000001')])).toBe('2.400001 EUR an hour');
  expect(hourlyWord([of('1'), of('3.5', 'USD')])).toBe('1.00 EUR an hour, 3.50 USD an hour');
  expect(hourlyWord([of('1'), { hourlyCost: null }])).toBe('1.00 EUR an hour, no price set for 1 of it');
  expect(hourlyWord([{ hourlyCost: null }])).toBe('No price set');
});

test('a difference says which way', () => {
  expect(difference('1.5', 'EUR')).toBe('1.50 EUR more');
  expect(difference('-1.5', 'EUR')).toBe('1.50 EUR less');
});

test('a bar is as high as its amount beside the largest', () => {
  expect(portion('50', ['50', '100.5', '3'])).toBe(49);
  expect(portion('100.5', ['50', '100.5'])).toBe(100);
  expect(portion('0', ['0'])).toBe(2);
});
