// The changes that the whole workload allows, in the page's head.
import { Button, Menu } from '@mantine/core';
import { useState } from 'react';
import { useSession } from '../api/session';
import { AddDialog, DecommissionDialog } from '../lifecycle/InstanceDialogs';
import { ScaleDialog } from '../lifecycle/ScaleDialog';
import { GenerationsDialog, UpgradeDialog } from '../lifecycle/UpgradeDialog';
import { actNames, instanceKey, mayScale } from '../lifecycle/rules';
import type { InstanceAct } from '../lifecycle/rules';
import { DeniedButton, DeniedItem } from '../ui/Denied';
import { Icon } from '../ui/Icons';
import { changeable } from './MemberMenu';
import type { Workload } from '../lifecycle/workload';

/** The buttons and the open dialog; nothing once the workload is stopping or has ended. */
export function WorkloadActions({ workload, refresh }: { workload: Workload; refresh: () => void }) {
  const { can } = useSession();
  const [asked, setAsked] = useState<InstanceAct>();
  const may = (act: InstanceAct) =>
    act === 'scale' ? mayScale(workload.permissionFamily, can) : can(instanceKey(workload.permissionFamily, act));
  const gone = workload.releasedAt !== null || workload.status === 'STOPPING' || workload.status === 'STOPPED';
  if (gone) return null;
  const running = changeable(workload);
  const changes = running ? (['scale', 'upgrade', 'rollback'] as const) : [];
  const denied = (act: InstanceAct) => ({
    label: actNames[act],
    permissionKey: instanceKey(workload.permissionFamily, act),
    objectId: workload.id,
  });
  const close = () => setAsked(undefined);
  const done = () => {
    close();
    refresh();
  };
  const props = { workload, onClose: close, onDone: done };
  return (
    <>
      {running &&
        (may('add') ? (
          <Button leftSection={<Icon name="plus" size={15} />} onClick={() => setAsked('add')}>
            {actNames.add}
          </Button>
        ) : (
          <DeniedButton {...denied('add')} />
        ))}
      {changes.length > 0 && (
        <Menu position="bottom-end" shadow="md">
          <Menu.Target>
            <Button variant="default" rightSection={<Icon name="updown" size={14} />}>
              Change
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {changes.map((act) =>
              may(act) ? (
                <Menu.Item key={act} onClick={() => setAsked(act)}>
                  {actNames[act]}
                </Menu.Item>
              ) : (
                <DeniedItem key={act} {...denied(act)} />
              ),
            )}
          </Menu.Dropdown>
        </Menu>
      )}
      {may('decommission') ? (
        <Button
          variant="default"
          leftSection={<Icon name="trash" size={15} />}
          onClick={() => setAsked('decommission')}
        >
          Decommission
        </Button>
      ) : (
        <DeniedButton {...denied('decommission')} />
      )}
      {asked === 'add' && <AddDialog {...props} />}
      {asked === 'scale' && <ScaleDialog {...props} />}
      {asked === 'upgrade' && <UpgradeDialog {...props} />}
      {asked === 'rollback' && <GenerationsDialog {...props} />}
      {asked === 'decommission' && <DecommissionDialog {...props} />}
    </>
  );
}
