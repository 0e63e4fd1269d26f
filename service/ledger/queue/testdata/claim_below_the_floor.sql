-- The claim of the last build below the floor, as it was: service/ledger/queue of the commit before the one that brought
-- migrations/20261122230118_step_plan_guards.sql. $1 is the worker, $2 the limit, $3 the tenants in full, $4 whether it looked
-- behind a backlog a moment ago.
WITH RECURSIVE due AS MATERIALIZED (
	SELECT id, tenant_id, project_id, next_run_at FROM operation
	WHERE ended_at IS NULL AND claimed_by IS NULL AND next_run_at <= now() AND tenant_id <> ALL ($3::text[])
	ORDER BY next_run_at, id LIMIT 64
), project AS (
	(SELECT tenant_id, project_id, 1 AS place FROM operation
	WHERE NOT $4::bool AND (SELECT count(*) FROM due) = 64 AND ended_at IS NULL AND claimed_by IS NULL
	ORDER BY tenant_id, project_id LIMIT 1)
	UNION ALL
	SELECT next.tenant_id, next.project_id, p.place + 1 FROM project p, LATERAL (
		SELECT tenant_id, project_id FROM operation
		WHERE ended_at IS NULL AND claimed_by IS NULL AND (tenant_id, project_id) > (p.tenant_id, p.project_id)
		ORDER BY tenant_id, project_id LIMIT 1) next
	WHERE p.place < 1024
), others AS MATERIALIZED (
	SELECT o.* FROM project p, LATERAL (
		SELECT id, tenant_id, project_id, next_run_at FROM operation
		WHERE tenant_id = p.tenant_id AND project_id = p.project_id AND ended_at IS NULL AND claimed_by IS NULL AND next_run_at <= now()
		ORDER BY next_run_at, id LIMIT 2) o
	WHERE p.tenant_id <> ALL ($3::text[]) AND p.project_id NOT IN (SELECT project_id FROM due)
), by_project AS (
	SELECT *, row_number() OVER (PARTITION BY project_id ORDER BY next_run_at, id) AS turn
	FROM (SELECT * FROM due UNION ALL SELECT * FROM others) found
), by_tenant AS (
	SELECT *, row_number() OVER (PARTITION BY tenant_id ORDER BY turn, next_run_at, id) AS round FROM by_project
), first AS (
	SELECT id, round, next_run_at FROM by_tenant ORDER BY round, next_run_at, id LIMIT $2 * 4 -- others claim too
), picked AS (
	SELECT o.id FROM first r JOIN operation o ON o.id = r.id
	WHERE coalesce(o.ended_at, 'infinity') = 'infinity' AND coalesce(o.claimed_by, '') = '' AND o.next_run_at <= now() -- by its id, see notEnded
	ORDER BY r.round, r.next_run_at, r.id LIMIT $2 FOR UPDATE OF o SKIP LOCKED
)
UPDATE operation SET claimed_by = $1, claim_epoch = claim_epoch + 1, started_at = coalesce(started_at, now()),
	state = CASE WHEN state = 'PENDING' THEN 'RUNNING' ELSE state END, next_run_at = now() + interval '1 day'
FROM picked WHERE operation.id = picked.id RETURNING operation.id,
		operation.tenant_id,
		operation.project_id,
		operation.instance_id,
		operation.allocation_id,
		operation.kind,
		operation.state,
		operation.outcome,
		operation.adapter_name,
		operation.phase,
		operation.percent,
		operation.message,
		operation.requester_kind,
		operation.requester_id,
		operation.requester_name,
		operation.reason,
		operation.correlation_id,
		operation.desired_change,
		operation.targets,
		operation.force,
		operation.on_deadline,
		operation.forced_at,
		operation.cancel_requested_at,
		operation.cancel_requester,
		operation.cancel_reason,
		operation.cancel_message,
		operation.retry_of,
		operation.evidence,
		operation.error_code,
		operation.error_message,
		operation.error_owner,
		operation.error_retryable,
		operation.dispatch_attempt,
		operation.claim_epoch,
		operation.deadline,
		operation.created_at,
		operation.started_at,
		operation.ended_at, operation.adapter_status, operation.failures, operation.claimed_by
