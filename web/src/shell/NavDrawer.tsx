// The navigation of narrow screens.
import { Drawer } from '@mantine/core';
import type { ReactNode } from 'react';

/** The navigation in a drawer. */
export function NavDrawer({
  opened,
  onClose,
  children,
}: {
  opened: boolean;
  onClose: () => void;
  children: ReactNode;
}) {
  return (
    <Drawer opened={opened} onClose={onClose} size={276} title="Navigation" padding="md">
      <div className="side drawer">{children}</div>
    </Drawer>
  );
}
