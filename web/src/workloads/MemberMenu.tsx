// The changes that a member allows, as a menu.
import { ActionIcon, Menu } from '@mantine/core';
import { useSession } from '../api/session';
import { actNames, memberActs, memberCan, memberKey } from '../lifecycle/rules';
import type { MemberAct } from '../lifecycle/rules';
import type { MemberBitsFragment } from '../generated/graphql';
import { DeniedItem } from '../ui/Denied';
import { Icon } from '../ui/Icons';
import type { Workload } from '../lifecycle/workload';

/** Reports whether members of the workload can be changed at all. */
export function changeable(workload: Pick<Workload, 'status' | 'releasedAt'>): boolean {
  return workload.status === 'RUNNING' && workload.releasedAt === null;
}

/** The menu; nothing when the member's state allows no change. A change that the person may not make states why. */
export function MemberMenu({
  member,
  workload,
  onAct,
}: {
  member: MemberBitsFragment;
  workload: Workload;
  onAct: (member: MemberBitsFragment, act: MemberAct) => void;
}) {
  const { can } = useSession();
  const acts = changeable(workload) ? memberActs.filter((act) => memberCan(member, act)) : [];
  if (acts.length === 0) return null;
  return (
    <Menu position="bottom-end" withinPortal shadow="md">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${member.componentKey} ${member.index}`}>
          <Icon name="more" size={18} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {acts.map((act) => {
          const key = memberKey(workload.permissionFamily, act);
          if (!can(key)) return <DeniedItem key={act} label={actNames[act]} permissionKey={key} objectId={member.id} />;
          return (
            <Menu.Item key={act} {...(act === 'remove' ? { color: 'red' } : {})} onClick={() => onAct(member, act)}>
              {actNames[act]}
            </Menu.Item>
          );
        })}
      </Menu.Dropdown>
    </Menu>
  );
}
