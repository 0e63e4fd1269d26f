// The project that everything on the page belongs to.
import { Menu } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useSession } from '../api/session';
import { Icon } from '../ui/Icons';

/** The chosen project, and the choice of another. */
export function ProjectSwitcher() {
  const { project, projects, viewer, choose } = useSession();
  const navigate = useNavigate();
  const pick = (projectId: string) => {
    choose(projectId);
    void navigate({ to: '/workloads' });
  };
  return (
    <Menu width="target" position="bottom-start" shadow="md">
      <Menu.Target>
        <button type="button" className="switcher">
          <span className="grow">
            <span className="hidden-visually">Project: </span>
            <b>{project?.displayName ?? 'No project'}</b>
            <small>{viewer.tenant?.displayName ?? 'Platform staff'}</small>
          </span>
          <Icon name="updown" size={16} />
        </button>
      </Menu.Target>
      <Menu.Dropdown mah={360} style={{ overflowY: 'auto' }}>
        <Menu.Label>Projects</Menu.Label>
        {projects.map((each) => (
          <Menu.Item
            key={each.id}
            onClick={() => pick(each.id)}
            rightSection={each.id === project?.id ? <Icon name="check" size={14} /> : null}
          >
            {each.displayName}
            <div className="small faint">{each.slug}</div>
          </Menu.Item>
        ))}
        {projects.length === 0 && <Menu.Item disabled>You have no access to a project</Menu.Item>}
      </Menu.Dropdown>
    </Menu>
  );
}
