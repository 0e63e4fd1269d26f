// Using the app of a shared control plane on behalf of this project.
import { Modal } from '@mantine/core';
import { useState } from 'react';
import { useProjectId } from '../api/session';
import type { ShareBitsFragment } from '../generated/graphql';
import { ActionItem } from '../workloads/ActionsCard';

/** The dialog with the app's actions. */
export function UseDialog({ share, onClose }: { share: ShareBitsFragment; onClose: () => void }) {
  const projectId = useProjectId();
  const [open, setOpen] = useState<string>();
  const plane = share.controlPlane;
  if (plane === null) return null;
  return (
    <Modal opened onClose={onClose} title={<b>Use {plane.name}</b>} size="xl">
      <div className="action-list">
        {plane.actions.map((action) => (
          <ActionItem
            key={action.name}
            instanceId={share.instanceId}
            projectId={projectId}
            action={action}
            running={plane.status === 'RUNNING'}
            open={open === action.name}
            onToggle={() => setOpen(open === action.name ? undefined : action.name)}
          />
        ))}
      </div>
    </Modal>
  );
}
