// Who may do what in this project: people and roles, service accounts and keys, entitlements.
import { Tabs } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useSession } from '../api/session';
import { headOf } from '../lib/places';
import { Empty, PageHead } from '../ui/parts';
import { AccountsTab } from './AccountsTab';
import { CheckTab } from './CheckTab';
import { EntitlementsTab } from './EntitlementsTab';
import { PeopleTab } from './PeopleTab';
import { RolesTab } from './RolesTab';

const tabs = [
  { value: 'roles', label: 'People and roles', key: 'identity.binding.read', Content: RolesTab },
  { value: 'people', label: 'Invitations', key: 'identity.user.read', Content: PeopleTab },
  { value: 'accounts', label: 'Service accounts', key: 'identity.service_account.read', Content: AccountsTab },
  { value: 'entitlements', label: 'Entitlements', key: 'entitlement.read', Content: EntitlementsTab },
  { value: 'check', label: 'Check a permission', key: 'project.read', Content: CheckTab },
] as const;

/** The page; only tabs that the viewer may read are shown. */
export function AccessPage({ tab }: { tab: string | undefined }) {
  const { can } = useSession();
  const navigate = useNavigate();
  const open = tabs.filter((each) => can(each.key));
  const shown = open.find((each) => each.value === tab) ?? open[0];
  return (
    <div className="page">
      <PageHead {...headOf('/access')} />
      {shown === undefined ? (
        <div className="card">
          <Empty icon="audit" title="No access">
            Ask an administrator of the project.
          </Empty>
        </div>
      ) : (
        <Tabs
          value={shown.value}
          onChange={(next) => void navigate({ to: '/access', search: { tab: next ?? '' } })}
          keepMounted={false}
        >
          <Tabs.List mb="md">
            {open.map((each) => (
              <Tabs.Tab key={each.value} value={each.value}>
                {each.label}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          {open.map(({ value, Content }) => (
            <Tabs.Panel key={value} value={value}>
              <Content />
            </Tabs.Panel>
          ))}
        </Tabs>
      )}
    </div>
  );
}
