import { expect, test } from 'vitest';
import { about, amount, difference, portion } from './money';

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

test('a difference says which way', () => {
  expect(difference('1.5', 'EUR')).toBe('1.50 EUR more');
  expect(difference('-1.5', 'EUR')).toBe('1.50 EUR less');
});

test('a bar is as high as its amount beside the largest', () => {
  expect(portion('50', ['50', '100.5', '3'])).toBe(49);
  expect(portion('100.5', ['50', '100.5'])).toBe(100);
  expect(portion('0', ['0'])).toBe(2);
});
