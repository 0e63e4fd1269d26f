import { expect, it } from 'vitest';
import { columnsOf, denseFrom, groupId, layout } from './layout';
import type { Box, Placed } from './layout';

const components = [
  { componentKey: 'controller', displayName: 'Controller' },
  { componentKey: 'worker', displayName: 'Workers' },
];

function member(index: number, change: Partial<Placed> = {}): Placed {
  const node = { id: `nod_${index % 3}`, name: `node-${index % 3}` };
  return {
    id: `mem_${change.componentKey ?? 'worker'}_${index}`,
    componentKey: 'worker',
    index,
    status: 'ACTIVE',
    node,
    allocation: { id: `alc_${index % 3}` },
    ...change,
  };
}

const many = (count: number) => Array.from({ length: count }, (_, at) => member(at));

function overlap(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

it('puts members into the box of their component, in the order of their numbers', () => {
  const { groups } = layout(components, [member(2), member(0), member(1), member(0, { componentKey: 'controller' })]);
  expect(groups.map((group) => [group.key, group.tiles.map((tile) => tile.member.index)])).toEqual([
    ['controller', [0]],
    ['worker', [0, 1, 2]],
  ]);
});

it('leaves removed members out and shows a component without members', () => {
  const { groups, hosts, links } = layout(components, [member(0, { status: 'REMOVED' })]);
  expect(groups.map((group) => group.tiles.length)).toEqual([0, 0]);
  expect(hosts).toEqual([]);
  expect(links).toEqual([]);
});

it('shows members of a component that the manifest no longer names', () => {
  const { groups } = layout(components, [member(0, { componentKey: 'legacy' })]);
  expect(groups.map((group) => group.name)).toEqual(['Controller', 'Workers', 'legacy']);
});

it('draws a line from each member to its node, with the allocation, and none for a member without a node', () => {
  const { links } = layout(components, [member(0), member(1, { node: null })]);
  expect(links).toEqual([
    { id: 'mem_worker_0→nod_0', source: 'mem_worker_0', target: 'nod_0', count: 1, allocationId: 'alc_0' },
  ]);
});

it('draws lines by component once there are many members', () => {
  expect(layout(components, many(denseFrom - 1)).dense).toBe(false);
  const { links, dense } = layout(components, many(denseFrom));
  expect(dense).toBe(true);
  expect(links.map((link) => [link.source, link.target, link.count])).toEqual([
    [groupId('worker'), 'nod_0', 11],
    [groupId('worker'), 'nod_1', 11],
    [groupId('worker'), 'nod_2', 11],
  ]);
});

it('names each node once, in natural order, with its allocations', () => {
  const on = (index: number, name: string, allocation: string) =>
    member(index, { node: { id: name, name }, allocation: { id: allocation } });
  const { hosts } = layout(components, [on(0, 'node-10', 'b'), on(1, 'node-2', 'a'), on(2, 'node-10', 'a')]);
  expect(hosts.map((host) => [host.id, host.members, host.allocationIds])).toEqual([
    ['node-2', 1, ['a']],
    ['node-10', 2, ['a', 'b']],
  ]);
});

it.each([1, 5, 7, 40, 256])('lets nothing overlap with %i members', (count) => {
  const spread = many(count).map((each, at) => ({ ...each, node: { id: `nod_${at % 40}`, name: `node-${at % 40}` } }));
  const { groups, hosts } = layout(components, [member(0, { componentKey: 'controller' }), ...spread]);
  for (const group of groups) {
    group.tiles.forEach((tile, at) => {
      expect(tile.x + tile.width).toBeLessThanOrEqual(group.width);
      expect(tile.y + tile.height).toBeLessThanOrEqual(group.height);
      expect(group.tiles.slice(at + 1).filter((other) => overlap(tile, other))).toEqual([]);
    });
  }
  const boxes: Box[] = [...groups, ...hosts];
  boxes.forEach((box, at) => expect(boxes.slice(at + 1).filter((other) => overlap(box, other))).toEqual([]));
});

it('gives the same picture for the same members in any order', () => {
  const members = many(20);
  expect(layout(components, [...members].reverse()).groups).toEqual(layout(components, members).groups);
});

it('keeps few members in one column', () => {
  const tile = { width: 178, height: 54 };
  expect([1, 6].map((count) => columnsOf(count, tile))).toEqual([1, 1]);
  expect(columnsOf(256, tile)).toBeLessThanOrEqual(16);
});
