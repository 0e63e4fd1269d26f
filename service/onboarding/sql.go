package onboarding

// chosen finds the version: $1 is the app's short name, $2 the version or empty for the ACTIVE or else the newest one.
const chosen = `WITH v AS MATERIALIZED (SELECT m.*, a.publisher_tenant_id AS tenant, a.publisher_project_id AS project,
		a.promotion_terms AS terms
	FROM manifest m JOIN app a ON a.id = m.app_id WHERE m.app_slug = $1 AND ($2 = '' OR m.version = $2)
	ORDER BY m.stage = 'ACTIVE' DESC, m.id DESC LIMIT 1)`

// looked adds the instances that are checked: of the newest 500 that ran the version, and its smoke instance, the $3
// newest that are released and the $3 newest that are not. For an app that a tenant publishes they are that tenant's: a
// publisher may not see what others run, and the verdicts are the same for all callers.
const looked = chosen + `, ran AS (SELECT DISTINCT x.instance_id AS id FROM (
		SELECT g.instance_id FROM v JOIN instance_generation g ON g.manifest_id = v.id
			AND (v.tenant IS NULL OR g.tenant_id = v.tenant) ORDER BY g.created_at DESC LIMIT 500) x
		UNION SELECT v.evidence->'smoke'->>'instanceId' FROM v WHERE v.evidence IS NOT NULL),
	i AS MATERIALIZED (SELECT n.* FROM (SELECT i.*, row_number() OVER (PARTITION BY i.released_at IS NULL ORDER BY i.id DESC) AS place
		FROM ran JOIN instance i ON i.id = ran.id JOIN v ON v.tenant IS NULL OR i.tenant_id = v.tenant) n WHERE n.place <= $3)`

// of names the owners of a row, which decide who may see it.
const of = `jsonb_build_object('tenant', i.tenant_id, 'project', i.project_id, 'instance', i.id, 'family', i.permission_family, 'kind', `

const (
	subjectSQL = chosen + ` SELECT v.id, v.app_slug, v.tenant, v.project, v.version, v.stage, v.adapter_name,
		v.document,
		(SELECT d.description FROM adapter d WHERE d.name = v.adapter_name), v.terms, now() FROM v`

	instancesSQL = looked + ` SELECT jsonb_build_object('id', i.id, 'smoke', i.smoke, 'at', i.created_at,
		'gone', i.released_at IS NOT NULL, 'of', ` + of + `'instance'),
		'entitled', EXISTS (SELECT FROM entitlement e WHERE e.project_id = i.project_id AND e.app_slug = i.app_slug),
		'ran', EXISTS (SELECT FROM operation o WHERE o.instance_id = i.id AND o.kind = 'INSTANCE_CREATE'
			AND o.state = 'SUCCEEDED' AND coalesce(o.outcome, 'NORMAL') = 'NORMAL'),
		'events', coalesce((SELECT jsonb_agg(jsonb_build_object('id', e.id, 'type', e.type, 'at', e.occurred_at, 'lacks',
			to_jsonb(array_remove(ARRAY[CASE WHEN e.correlation_id = '' THEN 'correlation_id' END,
				CASE WHEN e.tenant_id <> i.tenant_id THEN 'org_id' END,
				CASE WHEN e.project_id <> i.project_id THEN 'project_id' END,
				CASE WHEN e.app_slug <> i.app_slug THEN 'app_slug' END], NULL))) ORDER BY e.seq)
			FROM (SELECT * FROM app_instance_event e WHERE e.instance_id = i.id AND e.type = ANY ($4) ORDER BY e.seq LIMIT 20) e), '[]'))
		FROM i ORDER BY i.id DESC`

	// The audit has what an adapter does by its tokens under the operation's id, or the instance's where no operation
	// is open, and what it does by its service account under that account. A task that its token requested is hidden
	// when its entry is missing; the platform's own tasks have a key with a space. An operation that a user or service
	// account requested is hidden when no entry has its correlation id.
	callsSQL = looked + `, ops AS MATERIALIZED (SELECT o.* FROM i JOIN operation o ON o.instance_id = i.id ORDER BY o.id DESC LIMIT 500),
		subjects AS (SELECT id FROM ops UNION SELECT id FROM i),
		entries AS ((SELECT a.* FROM subjects s JOIN audit_entry a ON a.actor_id = s.id AND a.actor_kind = 'OPERATION' LIMIT 10000)
			UNION ALL (SELECT a.* FROM v JOIN adapter d ON d.name = v.adapter_name JOIN audit_entry a ON a.actor_id = d.service_account_id
				AND a.actor_kind = 'SERVICE_ACCOUNT' AND a.project_id IN (SELECT i.project_id FROM i) ORDER BY a.id DESC LIMIT 1000)),
		tasks AS (SELECT t.* FROM ops JOIN node_task t ON t.operation_id = ops.id
			WHERE NOT starts_with(t.idempotency_key, 'platform ') ORDER BY t.id DESC LIMIT 5000)
		SELECT jsonb_build_object(
			'count', (SELECT count(*) FROM entries WHERE allowed), 'at', (SELECT max(created_at) FROM entries WHERE allowed),
			'refused', coalesce((SELECT jsonb_agg(jsonb_build_object('id', r.id, 'what', r.action, 'at', r.created_at, 'of',
				jsonb_build_object('tenant', coalesce(r.tenant_id, ''), 'project', coalesce(r.project_id, ''), 'kind', 'audit')) ORDER BY r.id DESC)
				FROM (SELECT * FROM entries WHERE NOT allowed AND code = $4 ORDER BY id DESC LIMIT 20) r), '[]'),
			'hidden', coalesce((SELECT jsonb_agg(h.row) FROM (
				(SELECT jsonb_build_object('id', t.id, 'what', 'node task ' || t.kind, 'at', t.created_at, 'of', ` +
		of + `'task')) AS row
					FROM tasks t JOIN i ON i.id = t.instance_id WHERE NOT EXISTS (SELECT FROM audit_entry a
						WHERE a.object_id = t.id AND a.action = 'runNodeTask' AND a.allowed) ORDER BY t.id DESC LIMIT 20)
				UNION ALL (SELECT jsonb_build_object('id', o.id, 'what', 'operation ' || o.kind, 'at', o.created_at, 'of', ` + of + `'operation')) AS row
					FROM ops o JOIN i ON i.id = o.instance_id WHERE o.requester_kind IN ('USER', 'SERVICE_ACCOUNT') AND NOT EXISTS (
						SELECT FROM audit_entry a WHERE a.correlation_id = o.correlation_id AND a.allowed) ORDER BY o.id DESC LIMIT 20)) h), '[]'))
		FROM v`

	actsSQL = looked + `, about AS (SELECT id FROM v UNION SELECT id FROM i)
		SELECT jsonb_build_object('id', a.id, 'what', a.action, 'at', a.created_at, 'name', a.actor_name,
			'account', CASE WHEN a.actor_kind = 'SERVICE_ACCOUNT' THEN a.actor_id ELSE '' END,
			'live', EXISTS (SELECT FROM service_account s WHERE s.id = a.actor_id AND s.deleted_at IS NULL),
			'of', jsonb_build_object('tenant', coalesce(a.tenant_id, ''), 'project', coalesce(a.project_id, ''), 'kind', 'audit'))
		FROM (SELECT a.* FROM about JOIN audit_entry a ON a.object_id = about.id AND a.allowed
			AND a.actor_kind IN ('USER', 'SERVICE_ACCOUNT') ORDER BY a.id DESC LIMIT 50) a ORDER BY a.id DESC`

	// An adapter acts outside of operations by its own account, and for an instance by the account its project chose.
	accountsSQL = looked + ` SELECT jsonb_build_object('id', s.id, 'name', s.name, 'what', x.what, 'live',
		s.deleted_at IS NULL,
			'at', s.created_at, 'of', jsonb_build_object('tenant', s.tenant_id, 'project', s.project_id, 'kind', 'account'))
		FROM (SELECT d.service_account_id AS id, 'acts for adapter ' || d.name AS what FROM v JOIN adapter d ON d.name = v.adapter_name
			UNION SELECT i.operator_service_account_id, 'operates instances of it' FROM i) x
		JOIN service_account s ON s.id = x.id ORDER BY s.id LIMIT 20`

	// Reports are of the adapter's build as it describes itself now, for this app, or for any app where the adapter was
	// not written for this one.
	reportsSQL = chosen + `, d AS (SELECT d.description AS said FROM v JOIN adapter d ON d.name = v.adapter_name)
		SELECT jsonb_build_object('id', e.id, 'kind', e.kind, 'passed', e.passed, 'at', e.created_at,
			'failed', coalesce((e.summary->>'failed')::integer, 0), 'missing', coalesce(e.summary->'missing', '[]'),
			'runner', coalesce((SELECT r.name FROM evidence_runner r WHERE r.id = e.runner_id AND r.revoked_at IS NULL), ''),
			'clauses', CASE WHEN e.kind = 'CONFORMANCE' THEN coalesce((SELECT jsonb_agg(c->>'id')
				FROM jsonb_array_elements(convert_from(e.report, 'UTF8')::jsonb->'digested'->'clauses') c
				WHERE c->>'outcome' = 'passed' AND c->>'id' IN ('upgrade.completes', 'rollback.completes', 'decommission.clean')), '[]')
				ELSE '[]' END)
		FROM (SELECT e.*, row_number() OVER (PARTITION BY e.kind ORDER BY e.id DESC) AS place
			FROM v CROSS JOIN d JOIN manifest x ON x.adapter_name = v.adapter_name
				JOIN promotion_evidence e ON e.manifest_id = x.id
			WHERE e.summary->>'adapter' = v.adapter_name AND e.summary->>'build' = d.said->>'build'
				AND (e.summary->>'app' = v.app_slug OR NOT d.said->'apps' @> jsonb_build_array(jsonb_build_object('slug', v.app_slug)))
			) e WHERE e.place <= 10 ORDER BY e.id DESC`

	artifactsSQL = chosen + ` SELECT jsonb_build_object('id', f.id, 'name', f.name, 'ref', f.ref, 'source',
		coalesce(s.name, ''),
			'off', s.disabled_at IS NOT NULL, 'signed', f.signature, 'needed', coalesce(s.signature_policy, '') <> 'OPTIONAL',
			'quarantine', CASE WHEN f.quarantined_at IS NULL THEN '' ELSE coalesce(nullif(f.quarantine_reason, ''),
				'no reason was recorded') END,
			'at', coalesce(f.verified_at, f.created_at))
		FROM v JOIN manifest_artifact p ON p.manifest_id = v.id JOIN artifact f ON f.id = p.artifact_id
			LEFT JOIN artifact_source s ON s.id = f.source_id ORDER BY f.id LIMIT 100`

	// An upgrade or a rollback is of the version that it led to or from, a deletion of the version that was deleted.
	walksSQL = looked + ` SELECT jsonb_build_object('id', o.id, 'kind', o.kind, 'at', o.ended_at,
			'succeeded', o.state = 'SUCCEEDED' AND coalesce(o.outcome, 'NORMAL') = 'NORMAL',
			'from', coalesce(o.desired_change->'platform'->'from'->>'version', ''),
			'to', coalesce(o.desired_change->'platform'->'to'->>'version', ''), 'of', ` + of + `'operation'))
		FROM v CROSS JOIN i JOIN operation o ON o.instance_id = i.id
		WHERE o.ended_at IS NOT NULL AND (o.kind = 'INSTANCE_DECOMMISSION' AND i.manifest_id = v.id
			OR o.kind IN ('INSTANCE_UPGRADE', 'INSTANCE_ROLLBACK') AND v.id IN (o.desired_change->'platform'->'from'->>'manifestId',
				o.desired_change->'platform'->'to'->>'manifestId'))
		ORDER BY o.id DESC LIMIT 200`

	// What policy leaves where the app is published; of an app of the platform, the platform's own.
	levelsSQL = `SELECT o.id, o.scope, o.document FROM app a JOIN policy_overlay o ON o.superseded_at IS NULL
		AND (o.tenant_id IS NULL
			OR o.project_id = a.publisher_project_id OR o.project_id IS NULL AND o.tenant_id = a.publisher_tenant_id)
		WHERE a.slug = $1 ORDER BY o.project_id IS NOT NULL, o.tenant_id IS NOT NULL`

	recordsSQL = chosen + ` SELECT ` + recordColumns + ` FROM v JOIN onboarding_record r ON r.manifest_id = v.id
		ORDER BY r.id DESC LIMIT $3`

	gapsSQL = chosen + ` SELECT g.condition, g.id FROM v JOIN gap g ON g.manifest_id = v.id AND g.condition <> ''`
)
