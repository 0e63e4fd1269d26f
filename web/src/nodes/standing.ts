// Whether a node takes new members, in a sentence for its row.
import type { NodeStandingFragment } from '../generated/graphql';
import { words } from '../lib/format';

type Standing = Pick<NodeStandingFragment, 'status' | 'cordoned' | 'cordonReason' | 'lost' | 'conditions' | 'drain'>;

/** Why a node takes no new members; undefined when it takes them. */
export function whyNot(node: Standing): string | undefined {
  const reason = node.cordonReason === '' ? '' : `: ${node.cordonReason}`;
  if (node.status === 'RETIRED') return node.lost ? 'retired as lost for good' : 'retired';
  if (node.drain !== null && !node.drain.ending) return `being drained${node.drain.force ? ' by force' : ''}${reason}`;
  if (node.cordoned) return `cordoned${reason}`;
  const barring = node.conditions?.find((condition) => condition.effect === 'NO_NEW_MEMBERS');
  if (barring !== undefined) return `${barring.name} is ${words(barring.state).toLowerCase()}: ${barring.message}`;
  return node.status === 'ONLINE' ? undefined : 'its agent does not answer';
}

/** The verbs that make sense on a node as it is. */
export function verbsOn(node: Standing): readonly Verb[] {
  if (node.status === 'RETIRED') return [];
  const verbs: Verb[] = node.cordoned ? ['uncordon'] : ['cordon'];
  if (node.drain === null || node.drain.ending) verbs.push('drain');
  else if (!node.drain.force) verbs.push('force');
  verbs.push(node.status === 'OFFLINE' ? 'lost' : 'retire');
  return verbs;
}

/** What an operator can do to a node. */
export type Verb = 'cordon' | 'uncordon' | 'drain' | 'force' | 'retire' | 'lost';
