// The layout of a workload's diagram: components on the left with their members in rows, nodes on
// the right, and lines from each member to its node. It is pure: the same workload gives the same diagram.

/** A component as the diagram needs it. */
export interface Component {
  readonly componentKey: string;
  readonly displayName: string;
}

/** A member as the diagram needs it. */
export interface Placed {
  readonly id: string;
  readonly componentKey: string;
  readonly index: number;
  readonly status: string;
  readonly node: { readonly id: string; readonly name: string } | null;
  readonly allocation: { readonly id: string } | null;
}

/** A box of the diagram, in the diagram's units. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A component's box; its members' boxes are relative to it. */
export interface Group<Member extends Placed> extends Box {
  readonly key: string;
  readonly name: string;
  readonly tiles: readonly (Box & { readonly member: Member })[];
}

/** A node's box, with the allocations through which it is used. */
export interface Host extends Box {
  readonly id: string;
  readonly members: number;
  readonly allocationIds: readonly string[];
}

/** A line to a node, from one member or from a component with `count` members there. */
export interface Link {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  readonly count: number;
  /** The allocation that puts the member there; undefined for a line of several members. */
  readonly allocationId: string | undefined;
}

/** The whole diagram. `dense` means that members are drawn small and lines are drawn per component. */
export interface Picture<Member extends Placed> {
  readonly groups: readonly Group<Member>[];
  readonly hosts: readonly Host[];
  readonly links: readonly Link[];
  readonly dense: boolean;
}

/** From this number of members on, one line each would be an unreadable web. */
export const denseFrom = 33;

const gap = 10;
const pad = 14;
const head = 34;
const groupGap = 26;
const hostWidth = 190;
const hostHead = 46;
const hostLine = 19;
const aisle = 130;
const large = { width: 178, height: 54 };
const small = { width: 60, height: 34 };

/** Returns the diagram of the members; removed members are left out. */
export function layout<Member extends Placed>(
  components: readonly Component[],
  all: readonly Member[],
): Picture<Member> {
  const members = all.filter((member) => member.status !== 'REMOVED');
  const dense = members.length >= denseFrom;
  const stacked = stackGroups(components, members, dense ? small : large);
  const width = Math.max(0, ...stacked.map((group) => group.width));
  const groups = stacked.map((group) => ({ ...group, width })); // equal widths, so that no line runs behind another group
  const right = width + aisle;
  const height = Math.max(0, ...groups.map((group) => group.y + group.height));
  return {
    groups,
    hosts: stackHosts(members, right, height),
    links: dense ? linksByGroup(members) : linksByMember(members),
    dense,
  };
}

/** Returns how many members are in a row, so that a group is a little wider than high. */
export function columnsOf(count: number, tile: { readonly width: number; readonly height: number }): number {
  if (count <= 6) return 1;
  return Math.min(16, Math.max(2, Math.round(Math.sqrt((count * tile.height * 1.5) / tile.width))));
}

function stackGroups<Member extends Placed>(
  components: readonly Component[],
  members: readonly Member[],
  tile: { width: number; height: number },
): Group<Member>[] {
  const known = new Set(components.map((each) => each.componentKey));
  const strays = [...new Set(members.map((member) => member.componentKey))].filter((key) => !known.has(key)).sort();
  const named = [...components, ...strays.map((key) => ({ componentKey: key, displayName: key }))];
  let y = 0;
  return named.map(({ componentKey, displayName }) => {
    const own = members.filter((member) => member.componentKey === componentKey).sort((a, b) => a.index - b.index);
    const columns = columnsOf(own.length, tile);
    const rows = Math.max(1, Math.ceil(own.length / columns));
    const tiles = own.map((member, at) => ({
      member,
      ...tile,
      x: pad + (at % columns) * (tile.width + gap),
      y: head + Math.floor(at / columns) * (tile.height + gap),
    }));
    const group = {
      key: componentKey,
      name: displayName,
      tiles,
      x: 0,
      y,
      width: Math.max(2 * pad + large.width, 2 * pad + columns * (tile.width + gap) - gap),
      height: head + rows * (tile.height + gap) - gap + pad,
    };
    y += group.height + groupGap;
    return group;
  });
}

/** Nodes in the order of their names, in as many columns as keep them no higher than the groups, centred beside them. */
function stackHosts(members: readonly Placed[], left: number, height: number): Host[] {
  const found = new Map<string, { id: string; name: string; members: number; allocations: Set<string> }>();
  for (const { node, allocation } of members) {
    if (node === null) continue;
    const host = found.get(node.id) ?? { id: node.id, name: node.name, members: 0, allocations: new Set<string>() };
    host.members++;
    if (allocation !== null) host.allocations.add(allocation.id);
    found.set(node.id, host);
  }
  const hosts = [...found.values()].sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
  const heights = hosts.map((host) => hostHead + Math.max(1, host.allocations.size) * hostLine + pad / 2);
  const tallest = Math.max(0, ...heights) + gap;
  const perColumn = Math.max(4, Math.floor((height + gap) / Math.max(1, tallest)));
  const columns: number[][] = [];
  hosts.forEach((_, at) => (columns[Math.floor(at / perColumn)] ??= []).push(at));
  const total = (column: readonly number[]) =>
    column.reduce((sum, at) => sum + (heights[at] ?? 0) + gap * 1.6, -gap * 1.6);
  return columns.flatMap((column, number) => {
    let y = Math.max(0, (height - total(column)) / 2);
    return column.map((at) => {
      const host = hosts[at];
      const box = { x: left + number * (hostWidth + 40), y, width: hostWidth, height: heights[at] ?? 0 };
      y += box.height + gap * 1.6;
      return {
        ...box,
        id: host?.id ?? '',
        members: host?.members ?? 0,
        allocationIds: [...(host?.allocations ?? [])].sort(),
      };
    });
  });
}

function linksByMember(members: readonly Placed[]): Link[] {
  return members.flatMap((member) =>
    member.node === null
      ? []
      : [
          {
            id: `${member.id}→${member.node.id}`,
            source: member.id,
            target: member.node.id,
            count: 1,
            allocationId: member.allocation?.id,
          },
        ],
  );
}

function linksByGroup(members: readonly Placed[]): Link[] {
  const found = new Map<string, Link>();
  for (const { componentKey, node } of members) {
    if (node === null) continue;
    const id = `${componentKey}→${node.id}`;
    const before = found.get(id);
    found.set(id, {
      id,
      source: groupId(componentKey),
      target: node.id,
      count: (before?.count ?? 0) + 1,
      allocationId: undefined,
    });
  }
  return [...found.values()];
}

/** Returns the diagram's id of a component, which no member or node can have. */
export function groupId(componentKey: string): string {
  return `component:${componentKey}`;
}
