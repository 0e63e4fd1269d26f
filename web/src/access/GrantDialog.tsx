// Granting a role.
import { SegmentedControl, Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { tell, useRead } from '../api/hooks';
import { useProjectId, useSession } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import { GrantRoleDocument, RolesDocument } from '../generated/graphql';
import { words } from '../lib/format';
import { endOf, lifetimes } from './lifetimes';
import type { Person } from './usePeople';

/** The dialog; people who cannot be listed are named by id. */
export function GrantDialog({
  people,
  onClose,
  onDone,
}: {
  people: readonly Person[];
  onClose: () => void;
  onDone: () => void;
}) {
  const projectId = useProjectId();
  const { project } = useSession();
  const { data } = useRead(RolesDocument, {});
  const [subjectId, setSubject] = useState('');
  const [role, setRole] = useState('project_viewer');
  const [wide, setWide] = useState(false);
  const [life, setLife] = useState('');
  const scope = wide ? 'TENANT' : 'PROJECT';
  const roles = (data?.roles ?? []).filter((each) => each.scopes.includes(scope));
  const known = roles.find((each) => each.name === role);
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: 'Grant a role',
        act: 'Grant',
        fields: ['subjectId', 'role', 'expiresAt', 'tenantId', 'projectId'],
        reasonNeeded: false,
        intro: 'You can grant only permissions that you have yourself.',
        wrong: subjectId === '' ? new Map([['subjectId', 'Choose a person.']]) : new Map(),
        send: ({ reason }) =>
          tell(GrantRoleDocument, {
            input: {
              subjectId,
              role,
              tenantId: wide ? (project?.tenantId ?? '') : null,
              projectId: wide ? null : projectId,
              expiresAt: endOf(life),
              reason,
            },
          }),
        form: (errors) => (
          <div className="stack">
            <SegmentedControl
              fullWidth
              aria-label="Where"
              value={scope}
              onChange={(next) => setWide(next === 'TENANT')}
              data={[
                { value: 'PROJECT', label: 'This project' },
                { value: 'TENANT', label: 'The whole tenant' },
              ]}
            />
            {people.length > 0 ? (
              <Select
                label="Who"
                searchable
                required
                data={people.map((each) => ({ value: each.id, label: `${each.displayName} (${each.email})` }))}
                value={subjectId}
                onChange={(next) => setSubject(next ?? '')}
                error={errors.get('subjectId')}
              />
            ) : (
              <TextInput
                label="Who"
                description="The person’s id"
                required
                maxLength={40}
                value={subjectId}
                onChange={(event) => setSubject(event.currentTarget.value.trim())}
                error={errors.get('subjectId')}
              />
            )}
            <div className="form-grid">
              <Select
                label="Role"
                description={known?.description}
                allowDeselect={false}
                data={roles.map((each) => ({ value: each.name, label: words(each.name) }))}
                value={role}
                onChange={(next) => setRole(next ?? role)}
                error={errors.get('role')}
              />
              <Select
                label="For how long"
                allowDeselect={false}
                data={lifetimes}
                value={life}
                onChange={(next) => setLife(next ?? '')}
                error={errors.get('expiresAt')}
              />
            </div>
          </div>
        ),
      }}
    />
  );
}
