import { expect, it } from 'vitest';
import { codeFrom, safeNext } from './login';

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
