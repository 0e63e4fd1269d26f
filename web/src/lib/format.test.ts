import { expect, it } from 'vitest';
import { ago, between, bytes, duration, labelOf, shorten, words } from './format';

it.each([
  [1_000, 'just now'],
  [42_000, '42 s ago'],
  [5 * 60_000, '5 min ago'],
  [3 * 3_600_000, '3 h ago'],
  [49 * 3_600_000, '2 d ago'],
])('says how long %d ms ago was', (passed, expected) => {
  expect(ago(new Date(1_800_000_000_000 - passed).toISOString(), 1_800_000_000_000)).toBe(expected);
});

it.each([
  [450, '450 ms'],
  [9_900, '9 s'],
  [125_000, '2 min 5 s'],
  [7_500_000, '2 h 5 min'],
  [-1, ''],
])('gives %d ms in its largest units', (length, expected) => expect(duration(length)).toBe(expected));

it('measures up to now while there is no end', () => {
  expect(between('2026-01-01T00:00:00Z', null, Date.parse('2026-01-01T00:01:01Z'))).toBe('1 min 1 s');
});

it.each([
  [0, '0 B'],
  [1536, '1.5 KiB'],
  [64 * 1024 * 1024, '64 MiB'],
])('gives %d bytes', (count, expected) => expect(bytes(count)).toBe(expected));

it('makes words of enum values and keys', () => {
  expect([words('INSTANCE_CREATE'), labelOf('partitionName'), labelOf('node_count')]).toEqual([
    'Instance create',
    'Partition name',
    'Node count',
  ]);
});

it('shortens in the middle and leaves short values alone', () => {
  expect([shorten('sha256:0123456789abcdef0123456789', 10, 4), shorten('short')]).toEqual(['sha256:012…6789', 'short']);
});
