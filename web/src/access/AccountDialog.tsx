// Creating a service account, or changing what one may do.
import { MultiSelect, NumberInput, Select, TagsInput, TextInput } from '@mantine/core';
import { useMemo, useState } from 'react';
import { tell, useRead, useSender } from '../api/hooks';
import { useProjectId, useSession } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import { CreateServiceAccountDocument, RolesDocument, UpdateServiceAccountDocument } from '../generated/graphql';
import type { AccountBitsFragment, AccountLimit, ActionRisk, ServiceAccountLimitsInput } from '../generated/graphql';

const risks = [
  { value: '', label: 'Any action' },
  { value: 'READ', label: 'Actions that only read' },
  { value: 'WRITE', label: 'Actions that do not lose work' },
];

/** The dialog; without an account it creates one. */
export function AccountDialog({
  account,
  onClose,
  onDone,
}: {
  account: AccountBitsFragment | undefined;
  onClose: () => void;
  onDone: () => void;
}) {
  const projectId = useProjectId();
  const { can } = useSession();
  const { data } = useRead(RolesDocument, {});
  const create = useSender(CreateServiceAccountDocument);
  const [name, setName] = useState(account?.name ?? '');
  const [keys, setKeys] = useState<string[]>([...(account?.permissionKeys ?? [])]);
  const [objects, setObjects] = useState<string[]>([...(account?.limits?.objectIds ?? [])]);
  const [risk, setRisk] = useState<string>(account?.limits?.maxRisk ?? '');
  const [perHour, setPerHour] = useState<number | string>(account?.limits?.operationsPerHour ?? '');
  const choice = useMemo(() => {
    const ceiling = data?.roles.find((each) => each.name === 'service_account')?.permissionKeys ?? [];
    return ceiling.filter((key) => can(key) || keys.includes(key));
  }, [data, can, keys]);
  const set: ServiceAccountLimitsInput = {
    objectIds: objects.length === 0 ? null : objects,
    maxRisk: risk === '' ? null : (risk as ActionRisk),
    operationsPerHour: perHour === '' ? null : Number(perHour),
  };
  const limits = Object.values(set).some((limit) => limit !== null) ? set : null;
  const lifted: (AccountLimit | false)[] = [
    set.objectIds === null && 'OBJECT_IDS',
    set.maxRisk === null && 'MAX_RISK',
    set.operationsPerHour === null && 'OPERATIONS_PER_HOUR',
  ];
  const liftLimits = lifted.filter((limit) => limit !== false);
  const wrong = new Map<string, string>();
  if (account === undefined && name.trim() === '') wrong.set('name', 'Enter a name.');
  if (keys.length === 0) wrong.set('permissionKeys', 'Choose at least one permission key.');
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: account === undefined ? 'Create a service account' : `Change ${account.name}`,
        act: account === undefined ? 'Create' : 'Save',
        fields: ['name', 'permissionKeys', 'limits'],
        wrong,
        reasonNeeded: false,
        intro:
          'It acts in this project only, and may do only what you list. You can grant only permissions that you have yourself.',
        send: ({ reason }) =>
          account === undefined
            ? create({ projectId, name: name.trim(), permissionKeys: keys, limits })
            : tell(UpdateServiceAccountDocument, {
                input: { serviceAccountId: account.id, permissionKeys: keys, limits, liftLimits, reason },
              }),
        form: (errors) => (
          <div className="stack">
            {account === undefined && (
              <TextInput
                label="Name"
                description="Lower-case letters, digits and hyphens"
                required
                maxLength={40}
                value={name}
                onChange={(event) => setName(event.currentTarget.value)}
                error={errors.get('name')}
                data-autofocus
              />
            )}
            <MultiSelect
              label="What it may do"
              searchable
              clearable
              required
              data={choice}
              value={keys}
              onChange={setKeys}
              error={errors.get('permissionKeys')}
            />
            <fieldset className="group">
              <legend>Limits</legend>
              <div className="form-grid">
                <TagsInput
                  className="wide"
                  label="Only these instances and allocations"
                  description="Ids; leave empty for the whole project"
                  value={objects}
                  onChange={setObjects}
                  maxTags={100}
                  error={errors.get('limits')}
                />
                <Select
                  label="Actions"
                  data={risks}
                  value={risk}
                  onChange={(next) => setRisk(next ?? '')}
                  allowDeselect={false}
                />
                <NumberInput
                  label="Operations per hour"
                  placeholder="No limit"
                  min={1}
                  max={100_000}
                  allowDecimal={false}
                  value={perHour}
                  onChange={setPerHour}
                />
              </div>
            </fieldset>
          </div>
        ),
      }}
    />
  );
}
