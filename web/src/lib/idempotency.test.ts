import { expect, it } from 'vitest';
import { attemptFor, newKey } from './idempotency';

function counter(): () => string {
  let count = 0;
  return () => `k${++count}`;
}

it('keeps the key for a retry of the same input', () => {
  const mint = counter();
  const first = attemptFor(undefined, { name: 'a' }, mint);
  expect(attemptFor(first, { name: 'a' }, mint).key).toBe('k1');
});

it('takes a new key when the input changed', () => {
  const mint = counter();
  const first = attemptFor(undefined, { name: 'a' }, mint);
  expect(attemptFor(first, { name: 'b' }, mint).key).toBe('k2');
});

it('mints keys that differ', () => {
  expect(new Set(Array.from({ length: 100 }, newKey)).size).toBe(100);
});
