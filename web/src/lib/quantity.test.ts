import { expect, test } from 'vitest';
import { quantityWord } from './quantity';

test('thousands are apart and every digit stays', () => {
  expect(quantityWord('0')).toBe('0');
  expect(quantityWord('999')).toBe('999');
  expect(quantityWord('1000')).toBe('1\u202f000');
  expect(quantityWord('-1234567.000000000001')).toBe('-1\u202f234\u202f567.000000000001');
  expect(quantityWord('123456789012345678901234')).toBe(
    '123\u202f456\u202f789\u202f012\u202f345\u202f678\u202f901\u202f234',
  );
});
