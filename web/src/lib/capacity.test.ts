import { expect, it } from 'vitest';
import { allocationName, needsOf } from './capacity';

it('says what an app needs in words', () => {
  expect(
    needsOf({
      requires_capacity_shape: ['baremetal', 'gpu_slice'],
      min_gpu_count: 4,
      requires_exclusive_node: true,
      network_span: 'multi_allocation',
    }),
  ).toEqual(['Bare metal or GPU slice', '4 GPUs or more', 'Whole node', 'Several allocations']);
});

it('calls an unnamed allocation by what it is', () => {
  expect(allocationName({ id: 'alc_0123456789', name: '', shape: 'BAREMETAL' })).toBe('Bare metal …56789');
  expect(allocationName({ id: 'alc_0123456789', name: 'rack', shape: 'BAREMETAL' })).toBe('rack');
});

it.each([[null], [{}], [{ min_gpu_count: 0, requires_exclusive_node: false }]])(
  'says nothing of what %j does not ask for',
  (block) => expect(needsOf(block)).toEqual([]),
);
