import { expect, it } from 'vitest';
import { bytes } from '../lib/format';
import { offered, usedPercent, wrongSize, wrongVolume } from './volume';

const given = { name: 'home', storageClass: 'parallel', sizeGiB: '20' };

it('takes a volume that the platform takes', () => {
  expect(wrongVolume(given).size).toBe(0);
  expect(wrongVolume({ ...given, name: 'a', sizeGiB: ' 1048576 ' }).size).toBe(0);
});

it.each([
  ['name', { name: '' }],
  ['name', { name: 'Home' }],
  ['name', { name: 'home-' }],
  ['storageClass', { storageClass: '' }],
  ['sizeGiB', { sizeGiB: '0' }],
  ['sizeGiB', { sizeGiB: '1.5' }],
  ['sizeGiB', { sizeGiB: '1048577' }],
])('says at %s what is wrong with %o', (field, change) => {
  expect([...wrongVolume({ ...given, ...change }).keys()]).toEqual([field]);
});

it('lets a volume only grow', () => {
  expect(wrongSize('20', 20)).toBeUndefined();
  expect(wrongSize('19', 20)).toBe('A whole number of GiB, from 20 to 1048576.');
});

it('says what nodes offer of a class', () => {
  const bare = {
    id: 'stc_1',
    name: 'disk',
    kind: 'LOCAL',
    title: 'Disk',
    description: '',
    disabled: false,
    hourlyListPrices: [],
  } as const;
  expect(offered({ ...bare, offer: null })).toBe('no node offers it now');
  const offer = { nodes: 1, totalBytes: 2 ** 40, freeBytes: 2 ** 30, sizeEnforced: true };
  expect(offered({ ...bare, offer })).toBe(`${bytes(2 ** 30)} free on 1 node`);
});

it('shows how full a volume is once it was measured', () => {
  expect(usedPercent({ usedBytes: null, sizeGiB: 1 })).toBeUndefined();
  expect(usedPercent({ usedBytes: 2 ** 29, sizeGiB: 1 })).toBe(50);
  expect(usedPercent({ usedBytes: 2 ** 31, sizeGiB: 1 })).toBe(100);
});
