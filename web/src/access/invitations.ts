// What an invitation makes of a person's state.
import type { PersonBitsFragment } from '../generated/graphql';

/** The parts of a person that the state rests on. */
export type Invited = Pick<PersonBitsFragment, 'disabledAt' | 'invitedAt' | 'acceptedAt' | 'lastLoginAt'>;

/** Returns whether a person may log in, is disabled, or has to accept an invitation first; a verified domain lets a person in without. */
export function stateOf(person: Invited): 'active' | 'disabled' | 'waiting' {
  if (person.disabledAt !== null) return 'disabled';
  return person.invitedAt === null || person.acceptedAt !== null || person.lastLoginAt !== null ? 'active' : 'waiting';
}
