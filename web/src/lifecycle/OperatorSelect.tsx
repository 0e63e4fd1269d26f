// Chooses the service account of a project as which an app's adapter may act.
import { Select } from '@mantine/core';
import { useRead } from '../api/hooks';
import { useSession } from '../api/session';
import { OperatorAccountsDocument } from '../generated/graphql';

/** Returns the accounts of the project to choose from, at most 100; empty where the caller may not see them. */
export function useOperatorAccounts(projectId: string): { value: string; label: string }[] {
  const { can } = useSession();
  const read = useRead(OperatorAccountsDocument, { projectId }, !can('identity.service_account.read'));
  return (read.data?.serviceAccounts.edges ?? []).map(({ node }) => ({ value: node.id, label: node.name }));
}

/** The field; empty means no account. */
export function OperatorSelect({
  projectId,
  value,
  onChange,
  error,
}: {
  projectId: string;
  value: string;
  onChange: (next: string) => void;
  error?: string | undefined;
}) {
  const accounts = useOperatorAccounts(projectId);
  return (
    <Select
      label="Operator account"
      description="The service account that the app may act as on its own, with the keys of that account, on this workload only"
      placeholder="None: the app acts in operations only"
      data={accounts}
      value={value === '' ? null : value}
      onChange={(next) => onChange(next ?? '')}
      clearable
      error={error}
    />
  );
}
