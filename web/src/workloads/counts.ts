// How many members of a component are in service, and how each of them is drawn.
import type { MemberBitsFragment } from '../generated/graphql';
import { toneOf } from '../ui/Status';

/** Returns how many members are active: the number that the summary begins with, else those that exist. */
export function activeOf(role: { readonly summary: string; readonly current: number }): number {
  const said = /^(\d+) of \d+ active/.exec(role.summary)?.[1];
  return said === undefined ? role.current : Number(said);
}

/** The order of the marks: serving members first, failed ones last. */
const order: readonly string[] = ['ACTIVE', 'JOINING', 'PENDING', 'DRAINING', 'DRAINED', 'REMOVING', 'FAILED'];

/** Returns a class for each member of a component: `healthy` for one that serves well, else the tone of its status. */
export function marksOf(
  members: readonly Pick<MemberBitsFragment, 'componentKey' | 'status' | 'health'>[],
  componentKey: string,
): string[] {
  return members
    .filter((each) => each.componentKey === componentKey && each.status !== 'REMOVED')
    .sort((a, b) => order.indexOf(a.status) - order.indexOf(b.status))
    .map((each) =>
      each.status === 'ACTIVE' && each.health === 'HEALTHY'
        ? 'healthy'
        : each.status === 'ACTIVE'
          ? 'there'
          : `tone-${toneOf(each.status)}`,
    );
}
