-- +goose Up
-- Signed reports of smokes of artifacts, of their kind.
CREATE TABLE "artifact_smoke" ("id" text NOT NULL, "artifact_id" text NOT NULL, "tenant_id" text NULL, "digest" text NOT NULL, "report" bytea NOT NULL, "summary" jsonb NULL, "passed" boolean NOT NULL, "submitted_by" text NOT NULL DEFAULT '', "runner_id" text NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
CREATE UNIQUE INDEX "artifactsmoke_artifact_id_digest_runner_id" ON "artifact_smoke" ("artifact_id", "digest", "runner_id");
ALTER TABLE artifact_smoke ADD FOREIGN KEY (artifact_id) REFERENCES artifact (id),
	ADD FOREIGN KEY (artifact_id, tenant_id) REFERENCES artifact (id, tenant_id), ADD FOREIGN KEY (tenant_id) REFERENCES tenant (id),
	ADD FOREIGN KEY (runner_id) REFERENCES evidence_runner (id);

ALTER TABLE artifact_smoke ENABLE ROW LEVEL SECURITY;
ALTER TABLE artifact_smoke FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON artifact_smoke TO app_owner USING (true) WITH CHECK (true);
CREATE POLICY operator_all ON artifact_smoke TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_read ON artifact_smoke FOR SELECT TO app_worker USING (true);
-- A platform's artifact is every tenant's to pin, so every tenant sees whether it was smoked; only the platform's staff bring its reports.
CREATE POLICY api_read ON artifact_smoke FOR SELECT TO app_api USING (tenant_id IS NULL
	OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]));
CREATE POLICY api_bring ON artifact_smoke FOR INSERT TO app_api WITH CHECK (
	(tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]))
	AND EXISTS (SELECT FROM artifact a WHERE a.id = artifact_id AND a.tenant_id = artifact_smoke.tenant_id));
GRANT SELECT, INSERT ON artifact_smoke TO app_api, app_operator;
GRANT SELECT ON artifact_smoke TO app_worker;

-- Whether an artifact was smoked: the newest report of a runner that is not revoked decides. It reads what its caller may.
-- +goose StatementBegin
CREATE FUNCTION platform.smoked(of text) RETURNS boolean LANGUAGE sql STABLE SET search_path = pg_catalog, public AS $$
	SELECT coalesce((SELECT s.passed FROM artifact_smoke s JOIN evidence_runner r ON r.id = s.runner_id
		WHERE s.artifact_id = of AND r.revoked_at IS NULL ORDER BY s.id DESC LIMIT 1), false)
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.smoked(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.smoked(text) TO app_api, app_operator, app_worker;

-- The launches of a running canary that succeeded and count towards its step to ACTIVE, at most 1,001, and whose they are. A
-- publisher's own launches show what it says of itself: those in projects of other tenants count (TENANTS). Of an app that no
-- other tenant may launch, those in other projects than the publishing one count (PROJECTS); of one that is its publisher's
-- alone, its own do (OWN). All count for an app of the platform (ALL), and no smoke launch ever does.
-- +goose StatementBegin
CREATE FUNCTION platform.canary_confidence(wanted text, OUT launches integer, OUT whose text)
	LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
	WITH c AS MATERIALIZED (SELECT m.id, m.canary_started_at AS since, a.publisher_tenant_id AS tenant, a.publisher_project_id AS project,
			CASE WHEN a.publisher_tenant_id IS NULL THEN 'ALL'
				WHEN EXISTS (SELECT FROM entitlement e WHERE e.app_slug = m.app_slug AND e.tenant_id <> a.publisher_tenant_id
					AND e.revoked_at IS NULL AND (e.expires_at IS NULL OR e.expires_at > now())) THEN 'TENANTS'
				WHEN EXISTS (SELECT FROM entitlement e WHERE e.app_slug = m.app_slug AND e.project_id <> a.publisher_project_id
					AND e.revoked_at IS NULL AND (e.expires_at IS NULL OR e.expires_at > now())) THEN 'PROJECTS'
				ELSE 'OWN' END AS whose
			FROM manifest m JOIN app a ON a.id = m.app_id
			WHERE m.id = wanted AND m.stage = 'CANARY' AND m.canary_started_at IS NOT NULL AND (session_user <> 'app_api'
				OR a.publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
				OR a.publisher_project_id = ANY ((SELECT platform.scope('app.projects'))::text[]))),
		counted AS (SELECT FROM c JOIN instance_generation g ON g.manifest_id = c.id AND g.number = 1 AND g.created_at >= c.since
			JOIN instance i ON i.id = g.instance_id AND NOT i.smoke
			JOIN operation o ON o.id = g.operation_id AND o.state = 'SUCCEEDED'
			WHERE c.whose IN ('ALL', 'OWN') OR c.whose = 'TENANTS' AND i.tenant_id <> c.tenant
				OR c.whose = 'PROJECTS' AND i.project_id <> c.project LIMIT 1001)
	SELECT (SELECT count(*) FROM counted)::integer, (SELECT whose FROM c)
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.canary_confidence(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.canary_confidence(text) TO app_api, app_operator, app_worker;
