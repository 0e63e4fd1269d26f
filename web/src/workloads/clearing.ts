// What a person can do about a blocker of a workload: pure rules over the platform's report of it.
import type { BlockerBitsFragment, OperationKind } from '../generated/graphql';
import { operationName } from '../lib/format';
import { memberCan } from '../lifecycle/rules';
import type { Workload } from '../lifecycle/workload';
import { cancelable, retryable } from '../operations/CancelRetry';
import { inputWith } from './work';

type Action = Workload['actions'][number];
type Member = Workload['members']['edges'][number]['node'];

/** The fields of a workload that the rules read. */
export type Standing = Pick<Workload, 'permissionFamily' | 'actions' | 'lastOperation' | 'members' | 'manifest'>;

/** One thing to do: its button, the permission that it needs, and what it does. */
export type Clearing = { readonly label: string; readonly permissionKey: string } & (
  | { readonly does: 'stop-work'; readonly action: string; readonly input: Readonly<Record<string, unknown>> }
  | { readonly does: 'cancel' | 'retry'; readonly operation: { readonly id: string; readonly kind: OperationKind } }
  | { readonly does: 'replace' | 'recover' | 'remove'; readonly member: Member }
  | { readonly does: 'decommission' }
);

/** The most pieces of work that have a button each. */
const maxWork = 3;

/** Returns what clears a blocker, the mildest first; empty where only waiting does. */
export function clearingsOf(blocker: BlockerBitsFragment, workload: Standing): Clearing[] {
  const { permissionFamily: family } = workload;
  const member = memberOf(blocker.subject, workload);
  if (blocker.code === 'WORK_RUNNING') return [...stopWork(workload), ...cancel(workload), ...force(workload, member)];
  switch (blocker.permissionKey) {
    case 'operation.cancel':
      return cancel(workload);
    case 'operation.retry':
      return retry(workload);
    case `${family}.member.replace`:
      return ofMember('replace', 'Replace', family, member);
    case `${family}.member.recover`:
      return ofMember('recover', 'Recover', family, member);
    case `${family}.instance.delete`:
      return [{ does: 'decommission', label: 'Decommission…', permissionKey: blocker.permissionKey }];
    default:
      return [];
  }
}

/** Returns a member's name by its id; undefined for anything else. */
export function nameIn(workload: Pick<Workload, 'members'>): (id: string) => string | undefined {
  const names = new Map(workload.members.edges.map(({ node }) => [node.id, `${node.componentKey} ${node.index}`]));
  return (id) => names.get(id);
}

/** The member that a blocker is about: by its id, or as the only one on the node. */
function memberOf(subject: string, { members }: Standing): Member | undefined {
  const there = members.edges.map((edge) => edge.node).filter((each) => each.status !== 'REMOVED');
  const on = there.filter((each) => subject !== '' && (each.node?.id === subject || each.node?.name === subject));
  return there.find((each) => each.id === subject) ?? (on.length === 1 ? on[0] : undefined);
}

/** Stops each piece of work by the app's own action: the one that it declares for that, or the only one with the key. */
function stopWork({ permissionFamily, actions, lastOperation, manifest: { work } }: Standing): Clearing[] {
  const action = actions.find((each) =>
    work?.cancel ? each.name === work.cancel.action : each.permissionKey === `${permissionFamily}.queue.cancel`,
  );
  const field = action === undefined ? undefined : (work?.cancel?.id ?? onlyField(action));
  if (action === undefined || field === undefined || lastOperation === null) return [];
  return lastOperation.waitsFor
    .filter((each) => each.workId !== '')
    .slice(0, maxWork)
    .map((each) => ({
      does: 'stop-work',
      label: `Cancel ${each.kind} ${each.workId}`,
      permissionKey: action.permissionKey,
      action: action.name,
      input: inputWith(action, field, each.workId),
    }));
}

/** The only field that an action needs: it takes the id of the work. */
function onlyField({ inputSchema }: Action): string | undefined {
  const { required, properties } = inputSchema as {
    required?: readonly string[];
    properties?: Readonly<Record<string, { type?: string }>>;
  };
  const [name] = required ?? [];
  const type = name === undefined ? undefined : properties?.[name]?.type;
  return required?.length === 1 && (type === 'string' || type === 'integer') ? name : undefined;
}

function cancel({ lastOperation: of }: Standing): Clearing[] {
  if (of === null || !cancelable(of.kind, of.state) || of.cancelRequestedAt !== null) return [];
  const label = `Cancel the ${operationName(of.kind).toLowerCase()}`;
  return [{ does: 'cancel', label, permissionKey: 'operation.cancel', operation: of }];
}

function retry({ lastOperation: of }: Standing): Clearing[] {
  if (of === null || !retryable(of.state)) return [];
  return [{ does: 'retry', label: 'Try again…', permissionKey: 'operation.retry', operation: of }];
}

/** A drain is not forced; the removal that supersedes it can be. */
function force(workload: Standing, member: Member | undefined): Clearing[] {
  if (workload.lastOperation?.kind !== 'MEMBER_DRAIN') return [];
  return ofMember('remove', 'Remove', workload.permissionFamily, member, ' by force');
}

function ofMember(
  does: 'replace' | 'recover' | 'remove',
  verb: string,
  family: string,
  member: Member | undefined,
  how = '',
): Clearing[] {
  if (member === undefined || !memberCan(member, does)) return [];
  const label = `${verb} ${member.componentKey} ${member.index}${how}…`;
  return [{ does, label, permissionKey: `${family}.member.${does}`, member }];
}
