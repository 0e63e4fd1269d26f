// The filter of the audit log, as the form holds it and as the platform expects it.
import type { AuditFilterInput } from '../generated/graphql';

/** The form; an empty text does not filter. */
export interface Search {
  readonly who: string;
  readonly outcome: string;
  readonly actor: string;
  readonly object: string;
  readonly key: string;
  readonly correlation: string;
  readonly from: string;
  readonly to: string;
}

/** The filter that the page starts with: attempts of people and service accounts. */
export const noSearch: Search = {
  who: 'people',
  outcome: 'any',
  actor: '',
  object: '',
  key: '',
  correlation: '',
  from: '',
  to: '',
};

/** The actors that act for themselves; operations and nodes act for others. */
const people = ['USER', 'SERVICE_ACCOUNT', 'ANONYMOUS'];

const given = (text: string) => (text.trim() === '' ? null : text.trim());
const instant = (text: string) => (text === '' || Number.isNaN(Date.parse(text)) ? null : new Date(text).toISOString());

/** Returns the filter of a project's audit log. */
export function filterOf(search: Search, projectId: string): AuditFilterInput {
  return {
    projectId,
    actorKinds: search.who === 'all' ? null : people,
    actorId: given(search.actor),
    objectId: given(search.object),
    permissionKey: given(search.key),
    correlationId: given(search.correlation),
    from: instant(search.from),
    to: instant(search.to),
    allowed: search.outcome === 'allowed' ? true : search.outcome === 'denied' ? false : null,
    breakGlass: search.outcome === 'glass' ? true : null,
  };
}
