// The names of conditions and gaps.
import type { GapKind, GapState, OnboardingCondition } from '../generated/graphql';

/** The conditions, in words. */
export const conditions: Readonly<Record<OnboardingCondition, string>> = {
  CONTRACTS: 'Public contracts only',
  SERVICE_ACCOUNT: 'A service account for its automation',
  TENANT_BOUNDARY: 'Tests between tenants',
  LIFECYCLE_EVENTS: 'Required events with their context',
  ARTIFACT_SOURCES: 'Artifacts from governed sources',
  LIFECYCLE_WALKED: 'Upgrade, rollback and deletion carried out',
  SUPPORT_RUNBOOK: 'A runbook with correlation-first triage',
};

/** The kinds of gap, in words. */
export const kinds: Readonly<Record<GapKind, string>> = {
  MISSING_PRIMITIVE: 'Missing primitive',
  LEAKY_COUPLING: 'Leaky coupling',
  MISSING_KEY: 'Missing key or policy',
  MISSING_EVENT: 'Missing event',
  MISSING_BILLING_HOOK: 'Missing billing hook',
};

/** The decisions that a gap's state allows. */
export function decisionsFrom(state: GapState): readonly GapState[] {
  const of: Partial<Record<GapState, readonly GapState[]>> = {
    OPEN: ['ACCEPTED', 'DEFERRED', 'DECLINED'],
    DEFERRED: ['ACCEPTED', 'DECLINED'],
    ACCEPTED: ['DEFERRED'],
  };
  return of[state] ?? [];
}
