// A person's state, as an invitation changes it.
import type { PersonBitsFragment } from '../generated/graphql';

/** The parts of a person that the state rests on. */
export type Invited = Pick<PersonBitsFragment, 'disabledAt' | 'invitedAt' | 'acceptedAt' | 'lastLoginAt'>;

/** Returns whether a person may log in, is disabled, or must accept an invitation; a verified domain needs none. */
export function stateOf(person: Invited): 'active' | 'disabled' | 'waiting' {
  if (person.disabledAt !== null) return 'disabled';
  return person.invitedAt === null || person.acceptedAt !== null || person.lastLoginAt !== null ? 'active' : 'waiting';
}
