// The action that a report names: what it is, who may do it, and the dialog that shows its plan and carries it out.
import { Button } from '@mantine/core';
import { useState } from 'react';
import { ask, tell, useRead, useSender } from '../api/hooks';
import type { Answer } from '../api/hooks';
import { ChangeDialog } from '../changes/ChangeDialog';
import type { Change } from '../changes/ChangeDialog';
import {
  CancelOperationDocument,
  DecommissionInstanceDocument,
  DrainMemberDocument,
  PlanDecommissionInstanceDocument,
  PlanDrainMemberDocument,
  PlanReleaseAllocationDocument,
  PlanRemoveMemberDocument,
  PlanReplaceMemberDocument,
  PlanRetryOperationDocument,
  RecoverMemberDocument,
  ReleaseAllocationDocument,
  RemoveMemberDocument,
  ReplaceMemberDocument,
  RetryOperationDocument,
  TriageEndOperationDocument,
} from '../generated/graphql';
import type { PlanBitsFragment, TriageReportQuery } from '../generated/graphql';
import { DeniedButton } from '../ui/Denied';
import { ProblemNotice } from '../ui/Problem';
import { Card, Fact } from '../ui/parts';

export type Next = NonNullable<TriageReportQuery['triage']['next']>;

/** The label of each action's button; an action that this console does not know has no button. */
const labels: Readonly<Record<string, string>> = {
  cancelOperation: 'Cancel the operation',
  breakGlassEndOperation: 'End the operation by break-glass',
  retryOperation: 'Try again',
  decommissionInstance: 'Decommission',
  releaseAllocation: 'Release the allocation',
  drainMember: 'Drain the member',
  removeMember: 'Remove the member',
  replaceMember: 'Replace the member',
  recoverMember: 'Recover the member',
};

/** The actions that only undo or repeat. */
const harmless: ReadonlySet<string> = new Set(['retryOperation', 'recoverMember']);

/** The card of the action; `onDone` is called when it was carried out. */
export function NextCard({ next, onDone }: { next: Next; onDone: () => void }) {
  const [open, setOpen] = useState(false);
  const label = labelOf(next);
  return (
    <Card title="Next action">
      <div className="stack">
        <dl className="facts">
          <Fact term="Action">
            <code>{next.mutation}</code>
            {next.force && ' by force'}
          </Fact>
          <Fact term="Object">
            <span className="mono">{next.value}</span>
          </Fact>
          <Fact term="Key">
            <code>{next.permissionKey}</code>
            <span className="faint"> · {next.allowed ? 'you have it' : 'you do not have it'}</span>
          </Fact>
        </dl>
        {label !== undefined && (
          <div className="row">
            {next.allowed ? (
              <Button onClick={() => setOpen(true)}>{label}…</Button>
            ) : (
              <DeniedButton label={`${label}…`} permissionKey={next.permissionKey} objectId={next.value} />
            )}
          </div>
        )}
      </div>
      {open && <NextDialog next={next} onClose={() => setOpen(false)} onDone={onDone} />}
    </Card>
  );
}

/** The label of an action's button; undefined for an action that this console does not know. */
export function labelOf(next: Pick<Next, 'mutation' | 'force'>): string | undefined {
  const label = labels[next.mutation];
  return label !== undefined && next.force ? `${label} by force` : label;
}

interface DialogProps {
  readonly next: Next;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Shows the plan of the action, where there is one, and sends the action with the plan's hash. */
function NextDialog({ next, onClose, onDone }: DialogProps) {
  const way = useWay(next);
  const label = labelOf(next) ?? next.mutation;
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: label,
        act: label,
        dismiss: 'Close',
        danger: !harmless.has(next.mutation),
        fields: [],
        reasonNeeded: false,
        intro: (
          <>
            <p>
              <code>{next.mutation}</code> of <span className="mono">{next.value}</span>
              {next.force && ', by force'}: it clears what this report is about. If you give no reason, the audit has
              this one: {reasonOf(next)}
            </p>
            {next.mutation === 'releaseAllocation' && <Release allocationId={next.value} />}
          </>
        ),
        ...(way.plan === undefined ? {} : { plan: way.plan }),
        send: way.send,
        form: () => null,
      }}
    />
  );
}

/** The reason that is sent with the action. */
export function reasonOf({ variables }: Pick<Next, 'variables'>): string {
  const input = (variables as { input?: { reason?: unknown } }).input;
  return typeof input?.reason === 'string' ? input.reason : '';
}

type Way = Pick<Change, 'plan' | 'send'>;

/** Reads one field of an answer. */
function field<Data, Key extends keyof Data>(answer: Answer<Data>, key: Key): Answer<Data[Key]> {
  return answer.problem === undefined ? { data: answer.data[key] } : answer;
}

/** How an action is planned and sent. */
function useWay(next: Next): Way {
  const retry = useSender(RetryOperationDocument);
  const decommission = useSender(DecommissionInstanceDocument);
  const release = useSender(ReleaseAllocationDocument);
  const drain = useSender(DrainMemberDocument);
  const remove = useSender(RemoveMemberDocument);
  const replace = useSender(ReplaceMemberDocument);
  const recover = useSender(RecoverMemberDocument);
  const { value, force } = next;
  const why = (given: string | null) => given ?? reasonOf(next);
  const member = { memberId: value, force };
  const ways: Readonly<Record<string, Way>> = {
    cancelOperation: {
      send: ({ reason }) => tell(CancelOperationDocument, { input: { operationId: value, reason: why(reason) } }),
    },
    breakGlassEndOperation: {
      send: ({ reason }) => tell(TriageEndOperationDocument, { input: { operationId: value, reason: why(reason) } }),
    },
    retryOperation: {
      plan: () =>
        ask(PlanRetryOperationDocument, { input: { operationId: value } }).then((all) =>
          field(all, 'planRetryOperation'),
        ),
      send: ({ planHash, reason }) => retry({ operationId: value, planHash, reason: why(reason) }),
    },
    decommissionInstance: {
      plan: () =>
        ask(PlanDecommissionInstanceDocument, { input: { instanceId: value, force } }).then((all) =>
          field(all, 'planDecommissionInstance'),
        ),
      send: ({ planHash, reason }) => decommission({ instanceId: value, force, planHash, reason: why(reason) }),
    },
    releaseAllocation: { send: ({ reason }) => release({ allocationId: value, reason: why(reason) }) },
    drainMember: {
      plan: () => ask(PlanDrainMemberDocument, { input: member }).then((all) => field(all, 'planDrainMember')),
      send: ({ planHash, reason }) => drain({ ...member, planHash, reason: why(reason) }),
    },
    removeMember: {
      plan: () => ask(PlanRemoveMemberDocument, { input: member }).then((all) => field(all, 'planRemoveMember')),
      send: ({ planHash, reason }) => remove({ ...member, planHash, reason: why(reason) }),
    },
    replaceMember: {
      plan: () => ask(PlanReplaceMemberDocument, { input: member }).then((all) => field(all, 'planReplaceMember')),
      send: ({ planHash, reason }) => replace({ ...member, planHash, reason: why(reason) }),
    },
    recoverMember: { send: ({ reason }) => recover({ memberId: value, reason: why(reason) }) },
  };
  return (
    ways[next.mutation] ?? {
      send: async (): Promise<Answer<PlanBitsFragment>> => Promise.reject(new Error(`no way to ${next.mutation}`)),
    }
  );
}

/** What a release would do, which has a plan of its own form. */
function Release({ allocationId }: { allocationId: string }) {
  const { data, problem } = useRead(PlanReleaseAllocationDocument, { allocationId });
  if (problem !== undefined) return <ProblemNotice problem={problem} />;
  const plan = data?.planReleaseAllocation;
  if (plan === undefined) return null;
  if (!plan.allowed)
    return (
      <ul>
        {plan.reasons.map((reason, at) => (
          <li key={at} className="said">
            {reason.message} <code>{reason.code}</code>
          </li>
        ))}
      </ul>
    );
  return plan.instance === null ? (
    <p>Nothing uses the allocation.</p>
  ) : (
    <p>
      <b>{plan.instance.name}</b> uses the allocation: it is stopped first, and the work that runs on it ends.
    </p>
  );
}
