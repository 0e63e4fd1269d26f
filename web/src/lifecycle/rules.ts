// Which changes a member and an instance allow in their state, and with which key. The platform decides; this only
// prevents the console from offering what would be refused.
import type { MemberBitsFragment } from '../generated/graphql';

/** The changes of a member. */
export type MemberAct = 'drain' | 'cordon' | 'uncordon' | 'label' | 'remove' | 'replace' | 'recover';

/** The changes of an instance. */
export type InstanceAct = 'add' | 'scale' | 'upgrade' | 'rollback' | 'decommission';

/** Returns the permission key of a change of a member, in a family of keys. */
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

/** Returns the permission key of a change of an instance, in a family of keys; for a scaling, that of its additions. */
export function instanceKey(family: string, act: InstanceAct): string {
  switch (act) {
    case 'add':
    case 'scale':
      return `${family}.member.add`;
    case 'decommission':
      return `${family}.instance.delete`;
    default:
      return `${family}.instance.update`;
  }
}

/** Reports whether a person may scale in one direction at least: up adds members, down removes them. */
export function mayScale(family: string, can: (key: string) => boolean): boolean {
  return can(`${family}.member.add`) || can(`${family}.member.remove`);
}

type Standing = Pick<MemberBitsFragment, 'status' | 'cordoned'>;

/** Reports whether a member's state allows the change. */
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

/** The changes in the order of the menu. */
export const memberActs: readonly MemberAct[] = [
  'drain',
  'cordon',
  'uncordon',
  'label',
  'recover',
  'replace',
  'remove',
];

/** Returns the changes that are offered for a member of a running instance. */
export function offered(member: Standing, family: string, can: (key: string) => boolean): MemberAct[] {
  return memberActs.filter((act) => memberCan(member, act) && can(memberKey(family, act)));
}

/** The display names of the changes. */
export const actNames: Readonly<Record<MemberAct | InstanceAct, string>> = {
  drain: 'Drain',
  cordon: 'Cordon',
  uncordon: 'Return to service',
  label: 'Edit labels',
  remove: 'Remove',
  replace: 'Replace',
  recover: 'Recover',
  add: 'Add members',
  scale: 'Scale',
  upgrade: 'Upgrade',
  rollback: 'Roll back',
  decommission: 'Decommission',
};
