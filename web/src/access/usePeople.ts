// The people of the project's tenant, by id.
import { useMemo } from 'react';
import { useRead } from '../api/hooks';
import { useSession } from '../api/session';
import { TenantUsersDocument } from '../generated/graphql';
import type { TenantUsersQuery } from '../generated/graphql';

/** A person as lists show them. */
export type Person = TenantUsersQuery['users']['edges'][number]['node'];

/** Returns at most 100 people; empty without the permission to list them; then `nameOf` returns the id. */
export function usePeople(): { list: readonly Person[]; nameOf: (id: string) => string } {
  const { project, can } = useSession();
  const allowed = can('identity.user.read');
  const { data } = useRead(
    TenantUsersDocument,
    { tenantId: project?.tenantId ?? '' },
    project === undefined || !allowed,
  );
  return useMemo(() => {
    const list = data?.users.edges.map((edge) => edge.node) ?? [];
    const names = new Map(list.map((each) => [each.id, each.displayName]));
    return { list, nameOf: (id: string) => names.get(id) ?? id };
  }, [data]);
}
