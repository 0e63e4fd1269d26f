-- +goose Up
-- Who may see and write the tables of access, what of an instance an attached project sees, and how a
-- credential enters: disabled people, deleted accounts, exchanged keys, limits.
ALTER TABLE "external_identity" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "external_identity" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "external_identity" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "login_attempt" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "login_attempt" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "login_attempt" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "policy_overlay" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "policy_overlay" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "policy_overlay" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "control_plane_share" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "control_plane_share" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "control_plane_share" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "runtime_secret" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "runtime_secret" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "runtime_secret" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "audit_link" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "audit_link" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "audit_link" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "audit_checkpoint" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "audit_checkpoint" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "audit_checkpoint" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "webhook" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "webhook" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "webhook" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "webhook_delivery" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "webhook_delivery" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "webhook_delivery" TO app_owner USING (true) WITH CHECK (true);

-- Rows of a project.
CREATE POLICY api_scope ON "runtime_secret" TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON "runtime_secret" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "runtime_secret" TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON "webhook" TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON "webhook" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "webhook" TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON "webhook_delivery" TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON "webhook_delivery" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "webhook_delivery" TO app_worker USING (true) WITH CHECK (true);

-- A share is seen from both its ends.
CREATE POLICY api_scope ON control_plane_share TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
  OR owner_project_id = ANY ((SELECT platform.scope('app.projects'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
  OR owner_project_id = ANY ((SELECT platform.scope('app.projects'))::text[]));
CREATE POLICY operator_all ON control_plane_share TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON control_plane_share TO app_worker USING (true) WITH CHECK (true);
-- Of a shared control plane an attached project sees the instance itself, and nothing below it.
CREATE POLICY api_attached ON instance FOR SELECT TO app_api USING (
  id = ANY ((SELECT platform.scope('app.attached'))::text[]));

-- Policy is seen by those it binds, and written by those who run the level.
CREATE POLICY api_read ON policy_overlay FOR SELECT TO app_api USING (tenant_id IS NULL
  OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
  OR (tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[])
    AND (project_id IS NULL OR project_id = ANY ((SELECT platform.scope('app.projects'))::text[]))));
CREATE POLICY api_write ON policy_overlay FOR INSERT TO app_api WITH CHECK (
  tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR project_id = ANY ((SELECT platform.scope('app.projects'))::text[]));
CREATE POLICY api_end ON policy_overlay FOR UPDATE TO app_api USING (
  tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR project_id = ANY ((SELECT platform.scope('app.projects'))::text[]));
CREATE POLICY operator_all ON policy_overlay TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON policy_overlay TO app_worker USING (true);

-- The audit's chain is written by the sealer alone and changed by nobody.
CREATE POLICY operator_read ON audit_link FOR SELECT TO app_operator USING (true);
CREATE POLICY worker_all ON audit_link TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY operator_read ON audit_checkpoint FOR SELECT TO app_operator USING (true);
CREATE POLICY worker_all ON audit_checkpoint TO app_worker USING (true) WITH CHECK (true);

-- People see their own logins, a tenant's admins those of its people; hashes are read by functions alone.
CREATE POLICY api_seen ON external_identity FOR SELECT TO app_api USING (
  user_id = (SELECT current_setting('app.subject', true))
  OR EXISTS (SELECT FROM person p WHERE p.id = user_id AND p.tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])));
CREATE POLICY operator_all ON external_identity TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY api_seen ON session TO app_api USING (
  user_id = (SELECT current_setting('app.subject', true))
  OR EXISTS (SELECT FROM person p WHERE p.id = user_id AND p.tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])));
CREATE POLICY operator_all ON session TO app_operator USING (true) WITH CHECK (true);

GRANT SELECT, INSERT, UPDATE ON webhook, webhook_delivery, control_plane_share TO app_api, app_operator, app_worker;
GRANT SELECT, INSERT, UPDATE (superseded_at) ON policy_overlay TO app_api, app_operator;
GRANT SELECT ON policy_overlay TO app_worker;
GRANT SELECT (id, tenant_id, project_id, instance_id, member_id, node_id, purpose, audience, delivery, spec, version, keeper, previous_until,
  deliveries, delivered_at, expires_at, rotated_at, revoked_at, actor_kind, actor_id, actor_name, created_at), INSERT,
  UPDATE (revoked_at) ON runtime_secret TO app_api, app_operator;
GRANT SELECT, UPDATE, DELETE ON runtime_secret TO app_worker;
GRANT DELETE ON webhook_delivery TO app_worker;
GRANT SELECT ON audit_link, audit_checkpoint TO app_operator;
GRANT SELECT, INSERT ON audit_link, audit_checkpoint TO app_worker;
GRANT SELECT ON external_identity TO app_api, app_operator;
GRANT SELECT (id, user_id, expires_at, revoked_at, method, origin, agent, replaced_by, created_at), UPDATE (revoked_at) ON session TO app_api, app_operator;

ALTER TABLE external_identity ADD FOREIGN KEY (user_id) REFERENCES person (id);
ALTER TABLE policy_overlay ADD FOREIGN KEY (tenant_id) REFERENCES tenant (id),
  ADD FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id);
ALTER TABLE control_plane_share ADD FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id),
  ADD FOREIGN KEY (owner_project_id, tenant_id) REFERENCES project (id, tenant_id),
  ADD FOREIGN KEY (instance_id, tenant_id) REFERENCES instance (id, tenant_id);
ALTER TABLE runtime_secret ADD FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id),
  ADD FOREIGN KEY (instance_id, tenant_id) REFERENCES instance (id, tenant_id),
  ADD FOREIGN KEY (member_id, tenant_id) REFERENCES member (id, tenant_id),
  ADD FOREIGN KEY (node_id) REFERENCES compute_node (id);
ALTER TABLE webhook ADD FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id);
ALTER TABLE webhook_delivery ADD FOREIGN KEY (webhook_id, tenant_id) REFERENCES webhook (id, tenant_id);
ALTER TABLE audit_link ADD FOREIGN KEY (entry_id) REFERENCES audit_entry (id);

INSERT INTO lifecycle_transition (machine, from_state, to_state) VALUES
  ('share', 'OFFERED', 'ATTACHED'),
  ('share', 'OFFERED', 'DECLINED'),
  ('share', 'OFFERED', 'WITHDRAWN'),
  ('share', 'ATTACHED', 'DETACHED');

CREATE TRIGGER guard_transition BEFORE UPDATE ON control_plane_share FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
  EXECUTE FUNCTION platform.guard_transition('share', 'status');

DROP FUNCTION platform.enter(text, text, bytea);
DROP FUNCTION platform.set_scope(text, text[], text[], text[], text);

-- +goose StatementBegin
CREATE FUNCTION platform.set_scope(subject text, projects text[], tenants text[], seen text[], node text, attached text[]) RETURNS void
  LANGUAGE sql VOLATILE AS $$
  SELECT set_config('app.subject', coalesce(subject, ''), true),
         set_config('app.projects', coalesce(array_to_string(projects, ','), ''), true),
         set_config('app.tenants', coalesce(array_to_string(tenants, ','), ''), true),
         set_config('app.seen_tenants', coalesce(array_to_string(seen, ','), ''), true),
         set_config('app.node', coalesce(node, ''), true),
         set_config('app.attached', coalesce(array_to_string(attached, ','), ''), true)
$$;
-- +goose StatementEnd

-- The shared control planes that projects are attached to, at most 1,000.
-- +goose StatementBegin
CREATE FUNCTION platform.attached_to(projects text[]) RETURNS text[] LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  SELECT array_agg(instance_id) FROM (SELECT instance_id FROM control_plane_share
    WHERE project_id = ANY (projects) AND status = 'ATTACHED' AND ended_at IS NULL LIMIT 1000) s
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.attached_to(text[]) FROM PUBLIC;

-- +goose StatementBegin
CREATE FUNCTION platform.enter(kind text, credential text, hash bytea,
  OUT subject_kind text, OUT subject_id text, OUT subject_name text, OUT tenant text, OUT project text,
  OUT bindings jsonb, OUT allow jsonb, OUT expires timestamptz, OUT limits jsonb)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  projects text[]; tenants text[]; seen text[];
BEGIN
  CASE kind
  WHEN 'session' THEN
    SELECT 'USER', p.id, p.display_name, p.tenant_id, s.expires_at INTO subject_kind, subject_id, subject_name, tenant, expires
      FROM session s JOIN person p ON p.id = s.user_id
      WHERE s.id = credential AND s.secret_hash = hash AND s.revoked_at IS NULL AND s.expires_at > now()
        AND p.disabled_at IS NULL;
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN; END IF;
    bindings := platform.bindings_of(subject_id);
    SELECT array_agg(b ->> 'project') FILTER (WHERE b ->> 'project' IS NOT NULL),
           array_agg(b ->> 'tenant') FILTER (WHERE b ->> 'project' IS NULL AND b ->> 'tenant' IS NOT NULL),
           array_agg(b ->> 'tenant') FILTER (WHERE b ->> 'tenant' IS NOT NULL)
      INTO projects, tenants, seen FROM jsonb_array_elements(bindings) b;
    IF tenant IS NOT NULL THEN seen := array_append(seen, tenant); END IF;
    PERFORM platform.set_scope(subject_id, projects, tenants, seen, NULL, platform.attached_to(projects));
  WHEN 'key', 'exchange' THEN -- an exchanged key is a signed token: the process has verified it, and the key must still hold
    SELECT 'SERVICE_ACCOUNT', a.id, a.name, a.tenant_id, a.project_id, a.permission_keys, a.limits, k.expires_at
      INTO subject_kind, subject_id, subject_name, tenant, project, allow, limits, expires
      FROM service_account_key k JOIN service_account a ON a.id = k.service_account_id
      WHERE k.id = credential AND (kind = 'exchange' OR k.secret_hash = hash) AND k.revoked_at IS NULL
        AND (k.expires_at IS NULL OR k.expires_at > now()) AND a.deleted_at IS NULL;
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN; END IF;
    UPDATE service_account_key SET last_used_at = date_trunc('minute', now()) WHERE id IN (
      SELECT id FROM service_account_key WHERE id = credential
        AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute') FOR UPDATE SKIP LOCKED);
    PERFORM platform.set_scope(subject_id, ARRAY[project], NULL, ARRAY[tenant], NULL, platform.attached_to(ARRAY[project]));
  WHEN 'operation' THEN
    SELECT 'OPERATION', o.id, o.kind, o.tenant_id, o.project_id INTO subject_kind, subject_id, subject_name, tenant, project
      FROM operation o WHERE o.id = credential AND o.ended_at IS NULL;
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN; END IF;
    PERFORM platform.set_scope(subject_id, ARRAY[project], NULL, ARRAY[tenant], NULL, NULL);
  WHEN 'instance' THEN
    SELECT 'OPERATION', i.id, i.name, i.tenant_id, i.project_id INTO subject_kind, subject_id, subject_name, tenant, project
      FROM instance i WHERE i.id = credential AND i.released_at IS NULL;
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN; END IF;
    PERFORM platform.set_scope(subject_id, ARRAY[project], NULL, ARRAY[tenant], NULL, NULL);
  WHEN 'node' THEN
    SELECT 'NODE', n.id, n.name, c.expires_at INTO subject_kind, subject_id, subject_name, expires
      FROM node_credential c JOIN compute_node n ON n.id = c.node_id
      WHERE c.id = credential AND c.secret_hash = hash AND c.revoked_at IS NULL AND c.expires_at > now() AND n.status <> 'RETIRED';
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN; END IF;
    UPDATE node_credential SET first_used_at = now() WHERE id = credential AND first_used_at IS NULL;
    IF FOUND THEN
      UPDATE node_credential SET revoked_at = now()
        WHERE node_id = subject_id AND id < credential AND revoked_at IS NULL;
    END IF;
    PERFORM platform.set_scope(subject_id, NULL, NULL, NULL, subject_id, NULL);
  WHEN 'enrolment' THEN
    SELECT 'ENROLMENT', e.id, e.name, e.expires_at, e.node_id INTO subject_kind, subject_id, subject_name, expires, project
      FROM node_enrolment e WHERE e.id = credential AND e.secret_hash = hash AND e.used_at IS NULL AND e.expires_at > now();
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN; END IF;
    PERFORM platform.set_scope(subject_id, NULL, NULL, NULL, project, NULL);
  ELSE
    PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL);
  END CASE;
END $$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION platform.enter(text, text, bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.enter(text, text, bytea) TO app_api, app_operator, app_node;
