// Who is logged in, and the logout.
import { Menu } from '@mantine/core';
import { useState } from 'react';
import { logout } from '../api/client';
import { useSession } from '../api/session';
import { words } from '../lib/format';
import { SessionsDialog } from '../access/SessionsDialog';
import { Icon } from '../ui/Icons';

/** The viewer with roles, and logging out. */
export function ViewerMenu() {
  const { viewer } = useSession();
  const [sessions, setSessions] = useState(false);
  const roles = [...new Set(viewer.bindings.map((binding) => words(binding.role)))];
  return (
    <>
      <Menu width={250} position="top-start" shadow="md">
        <Menu.Target>
          <button type="button" className="switcher">
            <span className="grow">
              <span className="hidden-visually">Account of </span>
              <b>{viewer.actor.name}</b>
              <small>{roles.join(', ') || words(viewer.actor.kind)}</small>
            </span>
            <Icon name="updown" size={16} />
          </button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>{words(viewer.actor.kind)}</Menu.Label>
          <Menu.Item disabled style={{ opacity: 1 }}>
            <span className="mono">{viewer.actor.id}</span>
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item leftSection={<Icon name="key" size={16} />} onClick={() => setSessions(true)}>
            Your sessions
          </Menu.Item>
          <Menu.Item leftSection={<Icon name="out" size={16} />} onClick={() => void logout()}>
            Log out
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {sessions && <SessionsDialog onClose={() => setSessions(false)} />}
    </>
  );
}
