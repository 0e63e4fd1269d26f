import { expect, it } from 'vitest';
import { codeFrom, providerAddress, refusalOf, safeNext } from './codes';

it.each([
  ['#code=gpu_lnk_abc', 'gpu_lnk_abc'],
  ['http://127.0.0.1:8080/login#code=a%2Bb', 'a+b'],
  ['  gpu_lnk_abc \n', 'gpu_lnk_abc'],
  ['http://127.0.0.1:8080/login', ''],
  ['#code=%E0%A4%A', ''],
  ['two words', ''],
  ['', ''],
])('finds the code in %j', (pasted, code) => expect(codeFrom(pasted)).toBe(code));

it.each([
  ['/workloads/ins_1?tab=a', '/workloads/ins_1?tab=a'],
  ['//evil.example', '/workloads'],
  ['https://evil.example', '/workloads'],
  ['/\\evil.example', '/workloads'],
  ['/login', '/workloads'],
  [undefined, '/workloads'],
])('goes from %j to a path of its own', (next, path) => expect(safeNext(next)).toBe(path));

it.each([
  ['/workloads?show=all', '/auth/oidc/start?returnTo=%2Fworkloads%3Fshow%3Dall'],
  ['//evil.example', '/auth/oidc/start?returnTo=%2Fworkloads'],
])('begins at the provider and comes back to a path of its own from %j', (next, address) =>
  expect(providerAddress(next)).toBe(address),
);

it('has words for a refusal, the platform’s own beside them, and none for other reasons', () => {
  expect(refusalOf('LOGIN_REFUSED', 'ask Ann', 'c-1')).toMatchObject({
    code: 'LOGIN_REFUSED',
    correlationId: 'c-1',
    reasons: [{ message: 'ask Ann' }],
  });
  expect(refusalOf('SOMETHING_NEW', undefined, undefined)?.message).toMatch(/Start again/);
  expect(refusalOf('<script>', 'x', 'y')).toBeUndefined();
  expect(refusalOf(undefined, undefined, undefined)).toBeUndefined();
});
