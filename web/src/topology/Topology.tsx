// The diagram of a workload. It is loaded only when it is shown; the table shows the same.
import { Background, BackgroundVariant, Controls, Handle, Position, ReactFlow } from '@xyflow/react';
import type { Edge, Node, NodeChange, NodeProps } from '@xyflow/react';
import '@xyflow/react/dist/style.css';
import { useMantineColorScheme } from '@mantine/core';
import { useMemo } from 'react';
import { allocationName } from '../lib/capacity';
import type { MemberBitsFragment } from '../generated/graphql';
import { plural, words } from '../lib/format';
import { Icon } from '../ui/Icons';
import { toneOf } from '../ui/Status';
import { groupId, layout } from './layout';
import type { Component, Group, Host, Link, Picture } from './layout';
import './topology.css';

/** What the diagram shows. */
export interface TopologyProps {
  readonly components: readonly Component[];
  readonly members: readonly MemberBitsFragment[];
  /** The members whose observed state differs from the desired one, with a description. */
  readonly drift: ReadonlyMap<string, string>;
  readonly onOpen: (memberId: string) => void;
}

type GroupNode = Node<{ group: Group<MemberBitsFragment> }, 'group-box'>;
type TileNode = Node<{ member: MemberBitsFragment; drift: string | undefined; dense: boolean }, 'tile'>;
type HostNode = Node<
  { name: string; address: string; online: boolean; allocations: readonly string[]; members: number },
  'host'
>;
type PictureNode = GroupNode | TileNode | HostNode;

const nodeTypes = { 'group-box': GroupBox, tile: Tile, host: HostBox };

/** The diagram: it can be moved and zoomed, and every member in it can be reached with the keyboard and opened. */
export default function Topology({ components, members, drift, onOpen }: TopologyProps) {
  const { colorScheme } = useMantineColorScheme();
  const picture = useMemo(() => layout(components, members), [components, members]);
  const nodes = useMemo(() => nodesOf(picture, members, drift), [picture, members, drift]);
  const edges = useMemo(() => edgesOf(picture, members), [picture, members]);
  const onNodesChange = (changes: NodeChange<PictureNode>[]) => {
    const opened = changes.find((change) => change.type === 'select' && change.selected);
    if (opened?.type === 'select' && members.some((member) => member.id === opened.id)) onOpen(opened.id);
  };
  const shape =
    picture.groups.map((group) => `${group.key} ${group.tiles.length}`).join() + picture.hosts.length.toString();
  return (
    <ReactFlow<PictureNode>
      key={shape}
      nodes={nodes}
      edges={edges}
      nodeTypes={nodeTypes}
      onNodesChange={onNodesChange}
      colorMode={colorScheme === 'auto' ? 'system' : colorScheme}
      fitView
      fitViewOptions={{ padding: 0.08, maxZoom: 1 }}
      minZoom={0.1}
      maxZoom={1.6}
      preventScrolling={false}
      zoomOnScroll={false}
      zoomOnDoubleClick={false}
      panOnScroll={false}
      nodesDraggable={false}
      nodesConnectable={false}
      edgesFocusable={false}
      edgesReconnectable={false}
      deleteKeyCode={null}
      selectionKeyCode={null}
      multiSelectionKeyCode={null}
      proOptions={{ hideAttribution: true }}
      aria-label="Diagram of the members on their nodes"
    >
      <Background variant={BackgroundVariant.Dots} gap={18} size={1} />
      <Controls showInteractive={false} position="top-right" />
    </ReactFlow>
  );
}

function nodesOf(
  picture: Picture<MemberBitsFragment>,
  members: readonly MemberBitsFragment[],
  drift: ReadonlyMap<string, string>,
): PictureNode[] {
  const still = { draggable: false, connectable: false, deletable: false };
  const groups = picture.groups.flatMap((group): PictureNode[] => [
    {
      ...still,
      ...sized(group),
      id: groupId(group.key),
      type: 'group-box',
      position: { x: group.x, y: group.y },
      data: { group },
      focusable: false,
      selectable: false,
      handles: handles(group),
      zIndex: 0,
    },
    ...group.tiles.map((tile): TileNode => ({
      ...still,
      ...sized(tile),
      id: tile.member.id,
      type: 'tile',
      parentId: groupId(group.key),
      position: { x: tile.x, y: tile.y },
      focusable: true,
      selectable: true,
      zIndex: 2,
      data: { member: tile.member, drift: drift.get(tile.member.id), dense: picture.dense },
      ariaLabel: spoken(tile.member, drift.get(tile.member.id)),
      handles: handles(tile),
    })),
  ]);
  return [
    ...groups,
    ...picture.hosts.map((host): HostNode => ({
      ...still,
      ...sized(host),
      id: host.id,
      type: 'host',
      position: { x: host.x, y: host.y },
      data: hostData(host, members),
      focusable: false,
      selectable: false,
      handles: handles(host),
      zIndex: 1,
    })),
  ];
}

/** Sizes and handles are known before anything is drawn, so that nothing must be measured. */
function sized({ width, height }: { width: number; height: number }) {
  return { width, height, measured: { width, height } };
}

function handles({ width, height }: { width: number; height: number }) {
  return [
    { type: 'source' as const, position: Position.Right, x: width, y: height / 2, width: 1, height: 1 },
    { type: 'target' as const, position: Position.Left, x: 0, y: height / 2, width: 1, height: 1 },
  ];
}

function hostData(host: Host, members: readonly MemberBitsFragment[]): HostNode['data'] {
  const node = members.find((member) => member.node?.id === host.id)?.node;
  const names = host.allocationIds.map((id) => {
    const allocation = members.find((member) => member.allocation?.id === id)?.allocation;
    return allocation === null || allocation === undefined ? id : allocationName(allocation);
  });
  return {
    name: node?.name ?? host.id,
    address: node?.address ?? '',
    online: node?.status !== 'OFFLINE',
    allocations: names,
    members: host.members,
  };
}

function edgesOf(picture: Picture<MemberBitsFragment>, members: readonly MemberBitsFragment[]): Edge[] {
  const byId = new Map(members.map((member) => [member.id, member]));
  return picture.links.map((link: Link) => {
    const member = byId.get(link.source);
    const down = member?.node?.status === 'OFFLINE';
    return {
      id: link.id,
      source: link.source,
      target: link.target,
      focusable: false,
      selectable: false,
      zIndex: 1,
      className: `tone-${down ? 'bad' : member === undefined ? 'idle' : toneOf(member.status)}${down ? ' cut' : ''}`,
      style: { strokeWidth: Math.min(6, 1.3 + Math.log2(link.count)) },
      ...(link.count > 1
        ? { label: String(link.count), labelBgPadding: [5, 2] as [number, number], labelBgBorderRadius: 5 }
        : {}),
    };
  });
}

/** Returns a member as a screen reader reads it. */
function spoken(member: MemberBitsFragment, drift: string | undefined): string {
  return [
    `${member.componentKey} ${member.index}`,
    words(member.status),
    member.cordoned ? 'cordoned' : '',
    member.health === 'UNKNOWN' ? 'health not reported' : words(member.health),
    member.node === null ? 'on no node yet' : `on ${member.node.name}`,
    drift ?? '',
  ]
    .filter(Boolean)
    .join(', ');
}

function Ends() {
  return (
    <>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </>
  );
}

function GroupBox({ data: { group } }: NodeProps<GroupNode>) {
  return (
    <div className="topo-group">
      <Ends />
      <b>{group.name}</b> <span className="faint">{plural(group.tiles.length, 'member')}</span>
    </div>
  );
}

function Tile({ data: { member, drift, dense } }: NodeProps<TileNode>) {
  const tone = toneOf(member.status);
  const health = member.status === 'ACTIVE' ? member.health : 'UNKNOWN';
  const title = spoken(member, drift);
  return (
    <div
      className={`topo-tile tone-${tone}${dense ? ' dense' : ''}${member.cordoned ? ' cordoned' : ''}`}
      title={title}
      data-member-tile={member.id}
      data-state={member.status}
    >
      <Ends />
      <span className="topo-name">
        {dense ? member.index : `${member.componentKey} ${member.index}`}
        {member.cordoned && <span className="tag">{dense ? 'c' : 'cordoned'}</span>}
        {drift !== undefined && (
          <span className="topo-drift">
            <Icon name="warn" size={13} />
          </span>
        )}
      </span>
      {!dense && (
        <span className="topo-state">
          <i /> {words(member.status)}
          {member.status === 'ACTIVE' && (
            <span className={`tone-${toneOf(health)} topo-health`}>
              {health === 'UNKNOWN' ? 'not reported' : words(health).toLowerCase()}
            </span>
          )}
        </span>
      )}
      {dense && <i className={health === 'UNKNOWN' ? '' : `tone-${toneOf(health)}`} />}
    </div>
  );
}

function HostBox({ data }: NodeProps<HostNode>) {
  return (
    <div className={`topo-host${data.online ? '' : ' off tone-bad'}`}>
      <Ends />
      <span className="topo-name">
        <Icon name="nodes" size={14} /> {data.name}
        {!data.online && <span className="tag">does not answer</span>}
      </span>
      <span className="faint mono">{data.address}</span>
      {data.allocations.map((name) => (
        <span key={name} className="topo-allocation">
          <Icon name="allocations" size={12} /> {name}
        </span>
      ))}
    </div>
  );
}
