package chaos

// rule is something that must hold when all is over: a query that names what breaks it.
type rule struct{ name, query string }

// ends are the events that end an operation on its timeline.
const ends = `('apps.operation.succeeded', 'apps.operation.failed', 'apps.operation.canceled')`

// rules are queries to the database itself, as its superuser.
var rules = []rule{
	{"every accepted operation has ended", `SELECT id || ' ' || kind || ' ' || state FROM operation
		WHERE ended_at IS NULL OR state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELED')`},
	{"every operation ended once on its timeline", `SELECT o.id || ' ' || o.kind || ' ' || o.state || ' ' || count(e.id)
		FROM operation o
		LEFT JOIN app_instance_event e ON e.operation_id = o.id AND e.type IN ` + ends + `
		WHERE o.instance_id IS NOT NULL GROUP BY o.id HAVING count(e.id) <> 1`},
	{"its timeline says how it ended", `SELECT o.id || ' ' || o.state || ' ' || e.type FROM operation o
		JOIN app_instance_event e ON e.operation_id = o.id AND e.type IN ` + ends + `
		WHERE e.type <> 'apps.operation.' || lower(o.state)`},
	{"timelines have no gap", `SELECT coalesce(instance_id, allocation_id, volume_id) || ' ' || count(*) || ' of '
		|| max(seq)
		FROM app_instance_event
		GROUP BY coalesce(instance_id, allocation_id, volume_id) HAVING count(*) <> max(seq) OR min(seq) <> 1
		OR count(DISTINCT seq) <> count(*)`},
	{"a project's feed keeps the order of each timeline", `SELECT about || ' ' || seq || ' after ' || before FROM (
		SELECT coalesce(instance_id, allocation_id, volume_id) AS about, seq, lag(seq) OVER (PARTITION BY
		coalesce(instance_id, allocation_id, volume_id) ORDER BY generation, xid, "position") AS before FROM app_instance_event) AS fed
		WHERE seq < before`},
	{"no step of an ended operation is open", `SELECT s.operation_id || ' ' || s.name || ' ' || s.state
		FROM operation_step s
		JOIN operation o ON o.id = s.operation_id WHERE o.ended_at IS NOT NULL
		AND s.state IN ('PENDING', 'RUNNING', 'UNDOING')`},
	{"no task outlives its operation", `SELECT t.id || ' ' || t.kind || ' ' || t.state || ' of ' || o.id
		FROM node_task t
		JOIN operation o ON o.id = t.operation_id WHERE o.ended_at IS NOT NULL AND t.ended_at IS NULL`},
	{"no worker has a claim", `SELECT id || ' by ' || claimed_by FROM operation WHERE claimed_by IS NOT NULL`},
	{"an unproved removal is listed", `SELECT m.id || ' on ' || coalesce(m.node_id, '-') FROM member m
		WHERE m.status = 'REMOVED' AND m.node_id IS NOT NULL
		AND EXISTS (SELECT FROM node_task t WHERE t.member_id = m.id AND t.kind <> 'RESIDUE' AND t.started_at IS NOT NULL)
		AND NOT EXISTS (SELECT FROM node_task t WHERE t.member_id = m.id AND t.kind = 'RESIDUE' AND t.state = 'SUCCEEDED')
		AND NOT EXISTS (SELECT FROM orphan o WHERE o.member_id = m.id)`},
	{"what ended without proof is listed", `SELECT o.id || ' ' || o.kind FROM operation o WHERE o.outcome = 'UNVERIFIED'
		AND NOT EXISTS (SELECT FROM orphan p WHERE p.operation_id = o.id OR o.targets ? p.member_id)`},
	{"what ended by force states it", `SELECT id || ' ' || kind FROM operation
		WHERE state = 'SUCCEEDED' AND outcome = 'NORMAL' AND (force OR forced_at IS NOT NULL)`},
	{"nothing is left behind once every node is online",
		`SELECT id || ' ' || kind || ' ' || message || ' ' || last_error FROM orphan WHERE resolved_at IS NULL`},
	{"every orphan has an owner and a message",
		`SELECT id || ' ' || kind FROM orphan WHERE owner = '' OR message = ''`},
	{"a stopped instance has no member", `SELECT m.id || ' ' || m.status || ' of ' || i.id FROM member m
		JOIN instance i ON i.id = m.instance_id
		WHERE i.status = 'STOPPED' AND m.status <> 'REMOVED'`},
	{"no allocation of a released instance is bound", `SELECT a.id || ' by ' || i.id FROM allocation a
		JOIN instance i ON i.id = a.instance_id
		WHERE i.released_at IS NOT NULL AND NOT EXISTS (SELECT FROM orphan o WHERE o.allocation_id = a.id
		AND o.resolved_at IS NULL)`},
	{"success has evidence", `SELECT id || ' ' || kind FROM operation WHERE state = 'SUCCEEDED' AND (evidence IS NULL
		OR outcome IS NULL)`},
	{"a failure has its reason", `SELECT id || ' ' || kind FROM operation WHERE state = 'FAILED' AND (error_code = ''
		OR error_message = '' OR error_owner = '')`},
	{"a cancel was requested or superseded", `SELECT id || ' ' || kind FROM operation WHERE state = 'CANCELED'
		AND cancel_requested_at IS NULL
		AND NOT EXISTS (SELECT FROM operation other WHERE other.instance_id = operation.instance_id
		AND other.created_at > operation.created_at
			AND other.kind IN ('INSTANCE_DECOMMISSION', 'MEMBER_REMOVE', 'MEMBER_REPLACE'))`},
	{"only what ended badly is retried", `SELECT o.id || ' of ' || was.id || ' ' || was.state FROM operation o
		JOIN operation was ON was.id = o.retry_of
		WHERE was.kind <> o.kind OR was.state NOT IN ('FAILED', 'CANCELED') OR was.ended_at > o.created_at`},
	// The release of an allocation that an instance uses is two operations of one request, with an entry each.
	{"every accepted change is in the audit, once", `SELECT o.id || ' ' || o.kind || ' has ' || count(a.id) FROM (
			SELECT *, count(*) OVER (PARTITION BY correlation_id, requester_id, project_id) AS of_request FROM operation) AS o
		LEFT JOIN audit_entry a ON a.allowed AND a.correlation_id = o.correlation_id AND a.actor_id = o.requester_id
		AND a.project_id = o.project_id
		GROUP BY o.id, o.kind, o.of_request HAVING count(a.id) <> o.of_request`},
	{"every cancel is in the audit", `SELECT id || ' ' || kind FROM operation WHERE cancel_requested_at IS NOT NULL
		AND NOT EXISTS (SELECT FROM audit_entry a WHERE a.allowed AND a.action = 'cancelOperation'
		AND a.object_id = operation.id)`},
}
