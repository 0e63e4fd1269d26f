// The way from a problem to the report of its request; beside every problem, so not in that page's file.
import { Link } from '@tanstack/react-router';
import type { Problem } from '../api/errors';

/** Codes of problems without a report: the request did not reach a person's session, or the platform. */
const unreported = ['NETWORK', 'UNAUTHENTICATED', 'TOKEN_EXPIRED', 'LOGIN_REFUSED'];

/** Leads from a problem to the report of its request. */
export function TriageLink({ problem }: { problem: Problem }) {
  if (problem.correlationId === '' || unreported.includes(problem.code)) return null;
  return (
    <Link to="/triage/$id" params={{ id: problem.correlationId }}>
      What happened
    </Link>
  );
}
