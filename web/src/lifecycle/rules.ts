// What can be done with a member and an instance as they are, and with which key. The platform decides; this only
// keeps the console from offering what would be refused.
import type { MemberBitsFragment } from '../generated/graphql';

/** What a person can ask of a member. */
export type MemberAct = 'drain' | 'cordon' | 'uncordon' | 'label' | 'remove' | 'replace' | 'recover';

/** What a person can ask of an instance. */
export type InstanceAct = 'add' | 'upgrade' | 'rollback' | 'decommission';

/** The permission key of an act on a member, in a family. */
export function memberKey(family: string, act: MemberAct): string {
  switch (act) {
    case 'drain':
    case 'cordon':
    case 'uncordon':
    case 'label':
      return `${family}.node.operate`;
    default:
      return `${family}.member.${act}`;
  }
}

/** The permission key of an act on an instance, in a family. */
export function instanceKey(family: string, act: InstanceAct): string {
  switch (act) {
    case 'add':
      return `${family}.member.add`;
    case 'decommission':
      return `${family}.instance.delete`;
    default:
      return `${family}.instance.update`;
  }
}

type Standing = Pick<MemberBitsFragment, 'status' | 'cordoned'>;

/** Whether a member's state lets it be asked. */
export function memberCan(member: Standing, act: MemberAct): boolean {
  const { status, cordoned } = member;
  if (status === 'REMOVED') return false;
  switch (act) {
    case 'drain':
      return status === 'ACTIVE';
    case 'cordon':
      return status === 'ACTIVE' && !cordoned;
    case 'uncordon':
      return status === 'DRAINED' || (status === 'ACTIVE' && cordoned);
    case 'label':
      return status !== 'REMOVING';
    case 'remove':
    case 'replace':
      return status !== 'REMOVING';
    case 'recover':
      return status === 'FAILED';
  }
}

/** The acts in the order a menu shows them. */
export const memberActs: readonly MemberAct[] = ['drain', 'cordon', 'uncordon', 'label', 'recover', 'replace', 'remove'];

/** The acts that are offered for a member of a running instance. */
export function offered(member: Standing, family: string, can: (key: string) => boolean): MemberAct[] {
  return memberActs.filter((act) => memberCan(member, act) && can(memberKey(family, act)));
}

/** An act as a person would say it. */
export const actNames: Readonly<Record<MemberAct | InstanceAct, string>> = {
  drain: 'Drain', cordon: 'Cordon', uncordon: 'Return to service', label: 'Edit labels', remove: 'Remove', replace: 'Replace', recover: 'Recover',
  add: 'Add members', upgrade: 'Upgrade', rollback: 'Roll back', decommission: 'Decommission',
};
