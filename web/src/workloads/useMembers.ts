// A workload's members beyond the first page, which comes with the workload itself.
import { useEffect, useMemo, useState } from 'react';
import { ask } from '../api/hooks';
import type { Answer } from '../api/hooks';
import { MoreMembersDocument } from '../generated/graphql';
import type { MemberBitsFragment, MemberPageBitsFragment, MoreMembersQuery } from '../generated/graphql';
import type { Workload } from '../lifecycle/workload';

/** The most members that a page shows. */
export const maxShown = 256;

/** Returns the members as read, at most maxShown; `more` reports whether there are others. */
export function useMembers(workload: Workload): { members: readonly MemberBitsFragment[]; more: boolean } {
  const { id, revision } = workload;
  const { pageInfo, edges } = workload.members;
  const [rest, setRest] = useState<{ id: string; members: readonly MemberBitsFragment[]; more: boolean }>({
    id,
    members: [],
    more: false,
  });
  const start = pageInfo.hasNextPage ? pageInfo.endCursor : null;
  useEffect(() => {
    if (start === null) return undefined;
    let left = false;
    void readOn(id, start, maxShown - edges.length).then((found) => {
      if (!left) setRest({ id, ...found });
    });
    return () => {
      left = true;
    };
  }, [id, revision, start, edges.length]);
  const further = start !== null && rest.id === id ? rest : undefined;
  const members = useMemo(() => {
    const first = edges.map((edge) => edge.node);
    const seen = new Set(first.map((member) => member.id));
    return [...first, ...(further?.members ?? []).filter((member) => !seen.has(member.id))];
  }, [edges, further]);
  return { members, more: further?.more ?? false };
}

/** Reads page after page. A page that cannot be read is skipped; it is read again after the next change. */
async function readOn(
  id: string,
  from: string,
  wanted: number,
): Promise<{ members: MemberBitsFragment[]; more: boolean }> {
  const members: MemberBitsFragment[] = [];
  let after: string | null = from;
  while (after !== null && members.length < wanted) {
    const answer: Answer<MoreMembersQuery> = await ask(MoreMembersDocument, { id, after });
    if (answer.problem !== undefined) return { members, more: true };
    const page: MemberPageBitsFragment = answer.data.instance.members;
    members.push(...page.edges.map((edge) => edge.node));
    after = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : null;
  }
  return { members: members.slice(0, wanted), more: after !== null };
}
