-- +goose Up
-- Who may see and write what delivery brings: the platform's sources and artifacts are read by all, a tenant's by
-- its own, and what a manifest pins by all who read the catalog.
ALTER TABLE artifact_source ENABLE ROW LEVEL SECURITY;
ALTER TABLE artifact_source FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON artifact_source TO app_owner USING (true) WITH CHECK (true);
CREATE POLICY operator_all ON artifact_source TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON artifact_source TO app_worker USING (true) WITH CHECK (true);
ALTER TABLE signer_key ENABLE ROW LEVEL SECURITY;
ALTER TABLE signer_key FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON signer_key TO app_owner USING (true) WITH CHECK (true);
CREATE POLICY operator_all ON signer_key TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON signer_key TO app_worker USING (true) WITH CHECK (true);
ALTER TABLE artifact_part ENABLE ROW LEVEL SECURITY;
ALTER TABLE artifact_part FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON artifact_part TO app_owner USING (true) WITH CHECK (true);
CREATE POLICY operator_all ON artifact_part TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON artifact_part TO app_worker USING (true) WITH CHECK (true);
ALTER TABLE promotion_evidence ENABLE ROW LEVEL SECURITY;
ALTER TABLE promotion_evidence FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON promotion_evidence TO app_owner USING (true) WITH CHECK (true);
CREATE POLICY operator_all ON promotion_evidence TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON promotion_evidence TO app_worker USING (true) WITH CHECK (true);
ALTER TABLE promotion ENABLE ROW LEVEL SECURITY;
ALTER TABLE promotion FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON promotion TO app_owner USING (true) WITH CHECK (true);
CREATE POLICY operator_all ON promotion TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON promotion TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY api_read ON artifact_source FOR SELECT TO app_api USING (tenant_id IS NULL OR tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY api_write ON artifact_source FOR INSERT TO app_api WITH CHECK (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY api_change ON artifact_source FOR UPDATE TO app_api USING (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY api_read ON signer_key FOR SELECT TO app_api USING (tenant_id IS NULL OR tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY api_write ON signer_key FOR INSERT TO app_api WITH CHECK (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY api_change ON signer_key FOR UPDATE TO app_api USING (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));

-- An artifact that a manifest pins is part of the catalog, whosever it is.
DROP POLICY api_read ON artifact;
CREATE POLICY api_read ON artifact FOR SELECT TO app_api USING (tenant_id IS NULL OR tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
  OR EXISTS (SELECT FROM manifest_artifact p WHERE p.artifact_id = artifact.id));
CREATE POLICY api_write ON artifact FOR INSERT TO app_api WITH CHECK (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR (tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]) AND project_id = ANY ((SELECT platform.scope('app.projects'))::text[])));
CREATE POLICY api_change ON artifact FOR UPDATE TO app_api USING (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR project_id = ANY ((SELECT platform.scope('app.projects'))::text[]))
  WITH CHECK (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR (tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]) AND project_id = ANY ((SELECT platform.scope('app.projects'))::text[])));
CREATE POLICY api_read ON artifact_part FOR SELECT TO app_api USING (EXISTS (SELECT FROM artifact a WHERE a.id = artifact_id));
CREATE POLICY api_write ON artifact_part FOR INSERT TO app_api WITH CHECK (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]));

-- An app is published by the project that the platform gave it to.
CREATE POLICY api_hold ON app FOR UPDATE TO app_api USING (publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR publisher_project_id = ANY ((SELECT platform.scope('app.projects'))::text[]));
CREATE POLICY api_write ON manifest FOR INSERT TO app_api WITH CHECK (EXISTS (SELECT FROM app a WHERE a.id = app_id
  AND (a.publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR a.publisher_project_id = ANY ((SELECT platform.scope('app.projects'))::text[]))));
CREATE POLICY api_change ON manifest FOR UPDATE TO app_api USING (EXISTS (SELECT FROM app a WHERE a.id = app_id
  AND (a.publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR a.publisher_project_id = ANY ((SELECT platform.scope('app.projects'))::text[]))));
CREATE POLICY api_write ON manifest_artifact FOR INSERT TO app_api WITH CHECK (EXISTS (SELECT FROM manifest m JOIN app a ON a.id = m.app_id
  WHERE m.id = manifest_id AND (a.publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR a.publisher_project_id = ANY ((SELECT platform.scope('app.projects'))::text[]))));
CREATE POLICY api_scope ON promotion_evidence TO app_api USING (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]))
  WITH CHECK (EXISTS (SELECT FROM manifest m JOIN app a ON a.id = m.app_id
    WHERE m.id = manifest_id AND a.publisher_tenant_id = tenant_id AND (a.publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR a.publisher_project_id = ANY ((SELECT platform.scope('app.projects'))::text[]))));
CREATE POLICY api_read ON promotion FOR SELECT TO app_api USING (tenant_id IS NULL OR tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY api_write ON promotion FOR INSERT TO app_api WITH CHECK (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[])
  OR (tenant_id IS NULL AND EXISTS (SELECT FROM manifest m JOIN app a ON a.id = m.app_id
    WHERE m.id = object_id AND (a.publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR a.publisher_project_id = ANY ((SELECT platform.scope('app.projects'))::text[])))));

-- A credential is written and never read: see platform.source_credential.
GRANT SELECT (id, tenant_id, name, kind, location, region, signature_policy, credential_user, keeper, credential_at, disabled_at, created_by, created_at),
  INSERT, UPDATE (name, signature_policy, credential_user, credential, keeper, credential_at, disabled_at) ON artifact_source TO app_api, app_operator;
GRANT SELECT, UPDATE ON artifact_source TO app_worker;
GRANT SELECT, INSERT, UPDATE (name, valid_until, revoked_at, revoke_reason) ON signer_key TO app_api, app_operator;
GRANT SELECT, INSERT ON artifact_part, promotion_evidence, promotion TO app_api, app_operator;
GRANT SELECT ON signer_key, artifact_part, promotion_evidence TO app_worker;
GRANT SELECT, INSERT ON promotion TO app_worker;
GRANT INSERT, UPDATE ON artifact, manifest TO app_api;
GRANT INSERT ON manifest_artifact TO app_api;
GRANT UPDATE (summary) ON app TO app_api;
GRANT UPDATE ON artifact, manifest TO app_worker;

ALTER TABLE app ADD FOREIGN KEY (publisher_project_id, publisher_tenant_id) REFERENCES project (id, tenant_id),
  ADD FOREIGN KEY (publisher_tenant_id) REFERENCES tenant (id);
ALTER TABLE artifact_source ADD FOREIGN KEY (tenant_id) REFERENCES tenant (id);
ALTER TABLE signer_key ADD FOREIGN KEY (source_id, tenant_id) REFERENCES artifact_source (id, tenant_id),
  ADD FOREIGN KEY (source_id) REFERENCES artifact_source (id), ADD FOREIGN KEY (tenant_id) REFERENCES tenant (id);
ALTER TABLE artifact ADD FOREIGN KEY (source_id) REFERENCES artifact_source (id), ADD FOREIGN KEY (tenant_id) REFERENCES tenant (id),
  ADD FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id);
ALTER TABLE artifact_part ADD FOREIGN KEY (artifact_id, tenant_id) REFERENCES artifact (id, tenant_id),
  ADD FOREIGN KEY (artifact_id) REFERENCES artifact (id), ADD FOREIGN KEY (tenant_id) REFERENCES tenant (id);
ALTER TABLE promotion_evidence ADD FOREIGN KEY (manifest_id) REFERENCES manifest (id), ADD FOREIGN KEY (tenant_id) REFERENCES tenant (id);
ALTER TABLE promotion ADD FOREIGN KEY (tenant_id) REFERENCES tenant (id);

-- The enveloped credential of a source that the caller sees, for the process that holds the keeper's key.
-- +goose StatementBegin
CREATE FUNCTION platform.source_credential(wanted text) RETURNS bytea LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT s.credential FROM artifact_source s WHERE s.id = wanted AND s.disabled_at IS NULL AND (s.tenant_id IS NULL OR session_user <> 'app_api'
    OR s.tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]) OR s.tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]))
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.source_credential(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.source_credential(text) TO app_api, app_operator, app_worker;
