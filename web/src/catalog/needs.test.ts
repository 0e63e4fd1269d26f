import { expect, it } from 'vitest';
import { needsOf } from './needs';

it('says what an app needs in words', () => {
  expect(needsOf({ requires_capacity_shape: ['baremetal', 'gpu_slice'], min_gpu_count: 4, requires_exclusive_node: true, network_span: 'multi_allocation' })).toEqual([
    'Bare metal or GPU slice', '4 GPUs or more', 'Whole node', 'Several allocations']);
});

it.each([[null], [{}], [{ min_gpu_count: 0, requires_exclusive_node: false }]])('says nothing of what %j does not ask for', (block) =>
  expect(needsOf(block)).toEqual([]));
