// One node, for operators: its conditions, its members, and what its drain waits for.
import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import type { Problem } from '../api/errors';
import { tell, useRead, useThrottled } from '../api/hooks';
import { useWhile } from '../api/useWhile';
import {
  CordonNodeDocument,
  DrainNodeDocument,
  NodeDetailDocument,
  RetireNodeDocument,
  UncordonNodeDocument,
} from '../generated/graphql';
import type { NodeDetailQuery, NodeStandingFragment } from '../generated/graphql';
import { operationName, words } from '../lib/format';
import { ProblemNotice } from '../ui/Problem';
import { ReasonDialog } from '../ui/ReasonDialog';
import { Status } from '../ui/Status';
import { Ago, Card, DataTable, Empty, Fact, Loading, PageHead } from '../ui/parts';
import { verbsOn, whyNot } from './standing';
import type { Verb } from './standing';

type Lodger = NodeDetailQuery['nodeMembers'][number];
type Condition = NonNullable<NodeStandingFragment['conditions']>[number];

/** The page of a node, read again every few seconds because nodes have no events. */
export function NodePage({ id }: { id: string }) {
  const read = useRead(
    NodeDetailDocument,
    useMemo(() => ({ id }), [id]),
  );
  useWhile(true, useThrottled(read.refresh));
  const node = read.data?.node.__typename === 'ComputeNode' ? read.data.node : undefined;
  if (node === undefined)
    return (
      <div className="page">
        <PageHead title="Node" crumbs={<Link to="/nodes">Nodes</Link>} />
        {read.problem === undefined ? <Loading /> : <ProblemNotice problem={read.problem} />}
      </div>
    );
  const lodgers = read.data?.nodeMembers ?? [];
  return (
    <div className="page">
      <PageHead
        title={node.name}
        crumbs={<Link to="/nodes">Nodes</Link>}
        actions={<Verbs node={node} onDone={read.refresh} />}
        lede={
          <span className="row" style={{ gap: 12, marginTop: 4 }}>
            <Status state={node.status} />
            <span>{sentence(node)}</span>
          </span>
        }
      />
      <Card title="Conditions" pad={node.conditions === null}>
        {node.conditions === null ? (
          <span className="faint">Its agent has reported no checks.</span>
        ) : (
          <DataTable<Condition>
            label="Conditions"
            columns={conditionColumns}
            rows={node.conditions}
            keyOf={(row) => row.name}
          />
        )}
      </Card>
      <Card title="Members" pad={false}>
        {lodgers.length === 0 ? (
          <Empty icon="check" title="No members">
            No member of any tenant is on this node.
          </Empty>
        ) : (
          <DataTable<Lodger> label="Members" columns={lodgerColumns} rows={lodgers} keyOf={(row) => row.memberId} />
        )}
      </Card>
      <Card title="Details">
        <dl className="facts">
          <Fact term="Where">{[node.region, node.sku].filter(Boolean).join(' · ') || '—'}</Fact>
          <Fact term="Last heartbeat">
            <Ago at={node.lastSeenAt} />
          </Fact>
          <Fact term="Booted">{node.bootedAt === null ? 'not since it was enrolled' : <Ago at={node.bootedAt} />}</Fact>
          {node.drain !== null && (
            <Fact term="Drain">
              requested by {node.drain.by} <Ago at={node.drain.since} />
              {node.drain.ending && ', being ended'}
            </Fact>
          )}
        </dl>
      </Card>
    </div>
  );
}

function sentence(node: NodeStandingFragment): string {
  const why = whyNot(node);
  return why === undefined ? 'It takes new members.' : `It takes no new members: ${why}.`;
}

const conditionColumns = [
  { head: 'Check', cell: (row: Condition) => <span className="strong mono">{row.name}</span> },
  { head: 'State', cell: (row: Condition) => <Status state={row.state} label={words(row.state)} /> },
  { head: 'Found', cell: (row: Condition) => <span className="wrap-any">{row.message}</span> },
  { head: 'Since', cell: (row: Condition) => <Ago at={row.since} /> },
  {
    head: 'Effect',
    cell: (row: Condition) => <span className="faint">{row.effect === 'NONE' ? 'none' : 'no new members'}</span>,
  },
];

const lodgerColumns = [
  {
    head: 'Tenant',
    cell: (row: Lodger) => (
      <span>
        {row.tenant}
        <span className="sub">{row.project}</span>
      </span>
    ),
  },
  {
    head: 'Workload',
    cell: (row: Lodger) => (
      <span>
        <b>{row.instanceName}</b>
        <span className="sub">
          {row.appSlug} · {row.componentKey} {row.index}
        </span>
      </span>
    ),
  },
  { head: 'Status', cell: (row: Lodger) => <Status state={row.status} /> },
  {
    head: 'Operation',
    cell: (row: Lodger) =>
      row.operation === null ? (
        <span className="faint">—</span>
      ) : (
        <Link to="/operations/$id" params={{ id: row.operation.id }}>
          {operationName(row.operation.kind)}
        </Link>
      ),
  },
  { head: 'Waits for', cell: (row: Lodger) => <span className="wrap-any">{waits(row)}</span> },
];

/** What a member waits for: why it could not be drained, or what blocks its operation. */
function waits(row: Lodger): string {
  if (row.refusal !== null) return row.refusal.message;
  return row.operation?.blockers[0]?.message ?? row.operation?.message ?? '';
}

/** The texts of a verb's dialog. */
const texts: Readonly<Record<Verb, { act: string; text: string; confirm: string }>> = {
  cordon: {
    act: 'Cordon',
    text: 'It takes no new members and allocations; those on it stay.',
    confirm: 'Keep new members away',
  },
  uncordon: {
    act: 'Uncordon',
    text: 'It takes members again, and members that were drained for it take work again.',
    confirm: 'Let it take members',
  },
  drain: {
    act: 'Drain',
    text: 'Every member of every tenant here is drained by an operation of its own.',
    confirm: 'Drain every member',
  },
  force: {
    act: 'Drain by force',
    text: 'Members that still work lose that work at once.',
    confirm: 'Their work is lost',
  },
  retire: {
    act: 'Retire',
    text: 'It is taken out for good. Nothing may be rented here.',
    confirm: 'Take it out for good',
  },
  lost: {
    act: 'Retire as lost',
    text: 'Its machine is lost with all that was on it: its allocations and members become failed.',
    confirm: 'What was on it is lost',
  },
};

function send(verb: Verb, nodeId: string, reason: string) {
  switch (verb) {
    case 'cordon':
      return tell(CordonNodeDocument, { input: { nodeId, reason } });
    case 'uncordon':
      return tell(UncordonNodeDocument, { input: { nodeId, reason } });
    case 'drain':
    case 'force':
      return tell(DrainNodeDocument, { input: { nodeId, reason, force: verb === 'force', deadlineSeconds: 3600 } });
    default:
      return tell(RetireNodeDocument, { input: { nodeId, reason, lost: verb === 'lost' } });
  }
}

/** The buttons of a node and their dialog. */
function Verbs({ node, onDone }: { node: NodeStandingFragment; onDone: () => void }) {
  const [verb, setVerb] = useState<Verb>();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const close = () => {
    setVerb(undefined);
    setProblem(undefined);
  };
  const act = async (chosen: Verb, reason: string) => {
    setBusy(true);
    const answer = await send(chosen, node.id, reason);
    setBusy(false);
    setProblem(answer.problem);
    if (answer.problem === undefined) {
      close();
      onDone();
    }
  };
  return (
    <>
      {verbsOn(node).map((one) => (
        <Button
          key={one}
          variant="default"
          onClick={() => {
            setVerb(one);
          }}
        >
          {texts[one].act}
        </Button>
      ))}
      {verb !== undefined && (
        <ReasonDialog
          opened
          title={`${texts[verb].act} ${node.name}`}
          confirm={texts[verb].confirm}
          act={texts[verb].act}
          busy={busy}
          problem={problem}
          onClose={close}
          onAct={(reason) => {
            void act(verb, reason);
          }}
        >
          {texts[verb].text}
        </ReasonDialog>
      )}
    </>
  );
}
