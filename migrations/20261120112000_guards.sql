-- +goose Up
-- What Ent cannot say: who may see and write what, which states may follow which, and what the
-- two sides of a reference have in common. Every table is under forced row-level security; a role
-- without a policy on a table sees nothing of it.

CREATE SCHEMA IF NOT EXISTS platform;
GRANT USAGE ON SCHEMA platform, public TO app_api, app_operator, app_node, app_worker;

-- The scope of a transaction, set by platform.enter from the caller's credential.
-- +goose StatementBegin
CREATE FUNCTION platform.scope(setting text) RETURNS text[] LANGUAGE sql STABLE AS
$$ SELECT string_to_array(nullif(current_setting(setting, true), ''), ',') $$;
-- +goose StatementEnd

ALTER TABLE "service_account" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "service_account" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "service_account" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "service_account_key" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "service_account_key" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "service_account_key" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "entitlement" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "entitlement" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "entitlement" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "allocation" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "allocation" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "allocation" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "node_task" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "node_task" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "node_task" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "instance" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "instance" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "instance" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "member" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "member" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "member" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "app_instance_event" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "app_instance_event" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "app_instance_event" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "operation" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "operation" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "operation" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "operation_step" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "operation_step" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "operation_step" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "tenant" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "tenant" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "tenant" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "project" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "project" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "project" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "person" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "person" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "person" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "session" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "session" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "session" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "login_code" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "login_code" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "login_code" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "role_binding" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "role_binding" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "role_binding" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "idempotency" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "idempotency" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "idempotency" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "app" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "app" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "app" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "artifact" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "artifact" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "artifact" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "manifest" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "manifest" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "manifest" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "manifest_artifact" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "manifest_artifact" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "manifest_artifact" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "adapter" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "adapter" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "adapter" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "compute_node" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "compute_node" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "compute_node" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "node_credential" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "node_credential" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "node_credential" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "node_enrolment" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "node_enrolment" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "node_enrolment" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "worker_process" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "worker_process" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "worker_process" TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE "audit_entry" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "audit_entry" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "audit_entry" TO app_owner USING (true) WITH CHECK (true);

-- Rows of a project: seen by callers of that project or of its tenant.
CREATE POLICY api_scope ON "service_account" TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON "service_account" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON "service_account_key" TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON "service_account_key" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON "entitlement" TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON "entitlement" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON "allocation" TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON "allocation" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON "node_task" TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON "node_task" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON "instance" TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON "instance" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON "member" TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON "member" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON "app_instance_event" TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON "app_instance_event" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON "operation" TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON "operation" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON "operation_step" TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON "operation_step" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "allocation" TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "instance" TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "member" TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "app_instance_event" TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "operation" TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "operation_step" TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "node_task" TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "entitlement" TO app_worker USING (true) WITH CHECK (true);

-- Tenants, projects and people.
CREATE POLICY api_scope ON tenant TO app_api USING (
  id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]));
CREATE POLICY operator_all ON tenant TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON project TO app_api USING (
  id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]))
  WITH CHECK (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON project TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON project TO app_worker USING (true);
CREATE POLICY api_scope ON person TO app_api USING (
  id = (SELECT current_setting('app.subject', true)) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]))
  WITH CHECK (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON person TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON role_binding TO app_api USING (
  user_id = (SELECT current_setting('app.subject', true))
  OR project_id = ANY ((SELECT platform.scope('app.projects'))::text[])
  OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]))
  WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[])
  OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON role_binding TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY operator_all ON login_code TO app_operator USING (true) WITH CHECK (true);

-- What a key was used for: the row's id is a hash that only its caller can make.
CREATE POLICY api_scope ON idempotency TO app_api USING (
  project_id = ANY ((SELECT platform.scope('app.projects'))::text[])
  OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]))
  WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[])
  OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON idempotency TO app_operator USING (true) WITH CHECK (true);

-- The catalog is the platform's: read by all, written by callers with a platform role.

CREATE POLICY api_read ON "app" FOR SELECT TO app_api USING (true);
CREATE POLICY operator_all ON "app" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "app" TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY api_read ON "artifact" FOR SELECT TO app_api USING (true);
CREATE POLICY operator_all ON "artifact" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "artifact" TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY api_read ON "manifest" FOR SELECT TO app_api USING (true);
CREATE POLICY operator_all ON "manifest" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "manifest" TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY api_read ON "manifest_artifact" FOR SELECT TO app_api USING (true);
CREATE POLICY operator_all ON "manifest_artifact" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "manifest_artifact" TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY api_read ON "adapter" FOR SELECT TO app_api USING (true);
CREATE POLICY operator_all ON "adapter" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "adapter" TO app_worker USING (true) WITH CHECK (true);

-- Nodes: a tenant sees those its allocations are bound to, an agent sees itself.
CREATE POLICY api_bound ON compute_node FOR SELECT TO app_api USING (
  EXISTS (SELECT FROM allocation a WHERE a.node_id = compute_node.id AND a.released_at IS NULL));
CREATE POLICY operator_all ON compute_node TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON compute_node TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY node_self ON compute_node TO app_node USING (id = (SELECT current_setting('app.node', true)))
  WITH CHECK (id = (SELECT current_setting('app.node', true)));
CREATE POLICY node_self ON node_task TO app_node USING (node_id = (SELECT current_setting('app.node', true)))
  WITH CHECK (node_id = (SELECT current_setting('app.node', true)));
CREATE POLICY node_self ON node_credential TO app_node USING (node_id = (SELECT current_setting('app.node', true)))
  WITH CHECK (node_id = (SELECT current_setting('app.node', true)));
CREATE POLICY node_self ON node_enrolment TO app_node USING (node_id = (SELECT current_setting('app.node', true)))
  WITH CHECK (node_id = (SELECT current_setting('app.node', true)));
CREATE POLICY operator_all ON node_credential TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY operator_all ON node_enrolment TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON worker_process TO app_worker USING (true) WITH CHECK (true);

-- The audit: written by all, read by those whose project it is, changed by none.
CREATE POLICY api_read ON audit_entry FOR SELECT TO app_api USING (
  project_id = ANY ((SELECT platform.scope('app.projects'))::text[])
  OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY api_write ON audit_entry FOR INSERT TO app_api WITH CHECK (true);
CREATE POLICY node_write ON audit_entry FOR INSERT TO app_node WITH CHECK (true);
CREATE POLICY operator_read ON audit_entry FOR SELECT TO app_operator USING (true);
CREATE POLICY operator_write ON audit_entry FOR INSERT TO app_operator WITH CHECK (true);
CREATE POLICY worker_read ON audit_entry FOR SELECT TO app_worker USING (true);
CREATE POLICY worker_write ON audit_entry FOR INSERT TO app_worker WITH CHECK (true);

-- Grants. Secrets' hashes are read by platform.enter alone; events and audit are append only.
GRANT SELECT, INSERT ON app_instance_event, audit_entry TO app_api, app_operator, app_worker;
GRANT INSERT ON audit_entry TO app_node;
GRANT USAGE ON SEQUENCE event_position TO app_api, app_operator, app_worker;
GRANT SELECT, INSERT, UPDATE ON entitlement, allocation, node_task, instance, member, operation, operation_step
  TO app_api, app_operator, app_worker;
GRANT SELECT, INSERT, UPDATE ON tenant, project, person, role_binding, service_account TO app_operator;
GRANT SELECT ON tenant TO app_api;
GRANT SELECT, INSERT, UPDATE ON project, person, role_binding, service_account TO app_api;
GRANT SELECT ON project TO app_worker;
GRANT SELECT (id, tenant_id, project_id, service_account_id, expires_at, revoked_at, last_used_at, created_at),
  INSERT, UPDATE (revoked_at) ON service_account_key TO app_api, app_operator;
GRANT INSERT ON login_code TO app_operator;
GRANT SELECT, INSERT, UPDATE (result) ON idempotency TO app_api, app_operator;
GRANT SELECT ON app, artifact, manifest, manifest_artifact, adapter TO app_api;
GRANT SELECT, INSERT, UPDATE ON app, artifact, manifest, manifest_artifact, adapter TO app_operator;
GRANT SELECT, UPDATE ON adapter TO app_worker;
GRANT SELECT ON app, artifact, manifest, manifest_artifact TO app_worker;
GRANT SELECT ON compute_node TO app_api;
GRANT SELECT, INSERT, UPDATE ON compute_node TO app_operator, app_node;
GRANT SELECT, UPDATE ON compute_node TO app_worker;
GRANT SELECT, UPDATE ON node_task TO app_node;
GRANT SELECT (id, node_id, expires_at, revoked_at, first_used_at, created_at), INSERT, UPDATE (revoked_at) ON node_credential TO app_node;
GRANT SELECT (id, node_id, expires_at, used_at, created_at), UPDATE (used_at) ON node_enrolment TO app_node;
GRANT SELECT (id, node_id, name, expires_at, used_at, created_at), INSERT ON node_enrolment TO app_operator;
GRANT SELECT, INSERT, UPDATE, DELETE ON worker_process TO app_worker;

-- References carry the tenant, so that no row can point into another one: foreign keys are not
-- bound by policies.
ALTER TABLE project ADD FOREIGN KEY (tenant_id) REFERENCES tenant (id);
ALTER TABLE person ADD FOREIGN KEY (tenant_id) REFERENCES tenant (id);
ALTER TABLE session ADD FOREIGN KEY (user_id) REFERENCES person (id);
ALTER TABLE login_code ADD FOREIGN KEY (user_id) REFERENCES person (id);
ALTER TABLE role_binding ADD FOREIGN KEY (user_id) REFERENCES person (id),
  ADD FOREIGN KEY (tenant_id) REFERENCES tenant (id),
  ADD FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id);
ALTER TABLE service_account ADD FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id);
ALTER TABLE service_account_key ADD FOREIGN KEY (service_account_id, tenant_id) REFERENCES service_account (id, tenant_id);
ALTER TABLE entitlement ADD FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id),
  ADD FOREIGN KEY (app_slug) REFERENCES app (slug);
ALTER TABLE manifest ADD FOREIGN KEY (app_id) REFERENCES app (id);
ALTER TABLE manifest_artifact ADD FOREIGN KEY (manifest_id) REFERENCES manifest (id),
  ADD FOREIGN KEY (artifact_id) REFERENCES artifact (id);
ALTER TABLE node_credential ADD FOREIGN KEY (node_id) REFERENCES compute_node (id);
ALTER TABLE allocation ADD FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id),
  ADD FOREIGN KEY (node_id) REFERENCES compute_node (id);
ALTER TABLE instance ADD FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id),
  ADD FOREIGN KEY (manifest_id) REFERENCES manifest (id);
ALTER TABLE allocation ADD FOREIGN KEY (instance_id, tenant_id) REFERENCES instance (id, tenant_id);
ALTER TABLE member ADD FOREIGN KEY (instance_id, tenant_id) REFERENCES instance (id, tenant_id),
  ADD FOREIGN KEY (allocation_id, tenant_id) REFERENCES allocation (id, tenant_id),
  ADD FOREIGN KEY (node_id) REFERENCES compute_node (id);
ALTER TABLE app_instance_event ADD FOREIGN KEY (instance_id, tenant_id) REFERENCES instance (id, tenant_id);
ALTER TABLE operation ADD FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id),
  ADD FOREIGN KEY (instance_id, tenant_id) REFERENCES instance (id, tenant_id),
  ADD FOREIGN KEY (allocation_id, tenant_id) REFERENCES allocation (id, tenant_id);
ALTER TABLE operation_step ADD FOREIGN KEY (operation_id, tenant_id) REFERENCES operation (id, tenant_id);
ALTER TABLE node_task ADD FOREIGN KEY (member_id, tenant_id) REFERENCES member (id, tenant_id),
  ADD FOREIGN KEY (node_id) REFERENCES compute_node (id);

-- Which state may follow which; domain/lifecycle is the source and a test holds the two together.
CREATE TABLE lifecycle_transition (
  machine text NOT NULL, from_state text NOT NULL, to_state text NOT NULL,
  PRIMARY KEY (machine, from_state, to_state));
GRANT SELECT ON lifecycle_transition TO app_api, app_operator, app_node, app_worker;
INSERT INTO lifecycle_transition (machine, from_state, to_state) VALUES
  ('instance', 'CREATED', 'STARTING'),
  ('instance', 'CREATED', 'STOPPING'),
  ('instance', 'CREATED', 'FAILED'),
  ('instance', 'STARTING', 'RUNNING'),
  ('instance', 'STARTING', 'STOPPING'),
  ('instance', 'STARTING', 'FAILED'),
  ('instance', 'RUNNING', 'STOPPING'),
  ('instance', 'RUNNING', 'FAILED'),
  ('instance', 'STOPPING', 'STOPPED'),
  ('allocation', 'REQUESTED', 'READY'),
  ('allocation', 'REQUESTED', 'RELEASING'),
  ('allocation', 'REQUESTED', 'FAILED'),
  ('allocation', 'READY', 'RELEASING'),
  ('allocation', 'READY', 'FAILED'),
  ('allocation', 'FAILED', 'RELEASING'),
  ('allocation', 'RELEASING', 'RELEASED'),
  ('member', 'PENDING', 'JOINING'),
  ('member', 'PENDING', 'REMOVING'),
  ('member', 'PENDING', 'FAILED'),
  ('member', 'JOINING', 'ACTIVE'),
  ('member', 'JOINING', 'REMOVING'),
  ('member', 'JOINING', 'FAILED'),
  ('member', 'ACTIVE', 'DRAINING'),
  ('member', 'ACTIVE', 'REMOVING'),
  ('member', 'ACTIVE', 'FAILED'),
  ('member', 'DRAINING', 'DRAINED'),
  ('member', 'DRAINING', 'ACTIVE'),
  ('member', 'DRAINING', 'REMOVING'),
  ('member', 'DRAINING', 'FAILED'),
  ('member', 'DRAINED', 'ACTIVE'),
  ('member', 'DRAINED', 'REMOVING'),
  ('member', 'DRAINED', 'FAILED'),
  ('member', 'REMOVING', 'REMOVED'),
  ('member', 'REMOVING', 'FAILED'),
  ('member', 'FAILED', 'JOINING'),
  ('member', 'FAILED', 'REMOVING'),
  ('artifact', 'DRAFT', 'STAGED'),
  ('artifact', 'STAGED', 'CANARY'),
  ('artifact', 'CANARY', 'ACTIVE'),
  ('artifact', 'CANARY', 'STAGED'),
  ('artifact', 'ACTIVE', 'DEPRECATED'),
  ('artifact', 'DEPRECATED', 'RETIRED'),
  ('manifest', 'DRAFT', 'STAGED'),
  ('manifest', 'STAGED', 'CANARY'),
  ('manifest', 'CANARY', 'ACTIVE'),
  ('manifest', 'CANARY', 'STAGED'),
  ('manifest', 'ACTIVE', 'DEPRECATED'),
  ('manifest', 'DEPRECATED', 'RETIRED'),
  ('operation', 'PENDING', 'RUNNING'),
  ('operation', 'PENDING', 'FAILED'),
  ('operation', 'PENDING', 'CANCELED'),
  ('operation', 'RUNNING', 'SUCCEEDED'),
  ('operation', 'RUNNING', 'FAILED'),
  ('operation', 'RUNNING', 'CANCELING'),
  ('operation', 'RUNNING', 'COMPENSATING'),
  ('operation', 'CANCELING', 'CANCELED'),
  ('operation', 'CANCELING', 'COMPENSATING'),
  ('operation', 'CANCELING', 'RUNNING'),
  ('operation', 'CANCELING', 'SUCCEEDED'),
  ('operation', 'CANCELING', 'FAILED'),
  ('operation', 'COMPENSATING', 'FAILED'),
  ('operation', 'COMPENSATING', 'CANCELED'),
  ('operation_step', 'PENDING', 'RUNNING'),
  ('operation_step', 'PENDING', 'SKIPPED'),
  ('operation_step', 'RUNNING', 'SUCCEEDED'),
  ('operation_step', 'RUNNING', 'FAILED'),
  ('operation_step', 'RUNNING', 'SKIPPED'),
  ('operation_step', 'RUNNING', 'UNDOING'),
  ('operation_step', 'FAILED', 'RUNNING'),
  ('operation_step', 'FAILED', 'UNDOING'),
  ('operation_step', 'SUCCEEDED', 'UNDOING'),
  ('operation_step', 'UNDOING', 'UNDONE'),
  ('operation_step', 'UNDOING', 'FAILED'),
  ('node_task', 'PENDING', 'RUNNING'),
  ('node_task', 'PENDING', 'SUCCEEDED'),
  ('node_task', 'PENDING', 'FAILED'),
  ('node_task', 'PENDING', 'TIMED_OUT'),
  ('node_task', 'PENDING', 'CANCELED'),
  ('node_task', 'RUNNING', 'SUCCEEDED'),
  ('node_task', 'RUNNING', 'FAILED'),
  ('node_task', 'RUNNING', 'TIMED_OUT'),
  ('node_task', 'RUNNING', 'CANCELED'),
  ('node', 'OFFLINE', 'ONLINE'),
  ('node', 'OFFLINE', 'RETIRED'),
  ('node', 'ONLINE', 'OFFLINE'),
  ('node', 'ONLINE', 'RETIRED');

-- +goose StatementBegin
CREATE FUNCTION platform.guard_transition() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  before text := to_jsonb(OLD) ->> TG_ARGV[1];
  after  text := to_jsonb(NEW) ->> TG_ARGV[1];
BEGIN
  IF NOT EXISTS (SELECT FROM lifecycle_transition WHERE machine = TG_ARGV[0] AND from_state = before AND to_state = after) THEN
    RAISE EXCEPTION '% may not go from % to %', TG_ARGV[0], before, after
      USING ERRCODE = 'check_violation', CONSTRAINT = 'lifecycle_' || TG_ARGV[0];
  END IF;
  RETURN NEW;
END $$;
-- +goose StatementEnd

CREATE TRIGGER guard_transition BEFORE UPDATE ON "instance" FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
  EXECUTE FUNCTION platform.guard_transition('instance', 'status');
CREATE TRIGGER guard_transition BEFORE UPDATE ON "allocation" FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
  EXECUTE FUNCTION platform.guard_transition('allocation', 'status');
CREATE TRIGGER guard_transition BEFORE UPDATE ON "member" FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
  EXECUTE FUNCTION platform.guard_transition('member', 'status');
CREATE TRIGGER guard_transition BEFORE UPDATE ON "operation" FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state)
  EXECUTE FUNCTION platform.guard_transition('operation', 'state');
CREATE TRIGGER guard_transition BEFORE UPDATE ON "operation_step" FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state)
  EXECUTE FUNCTION platform.guard_transition('operation_step', 'state');
CREATE TRIGGER guard_transition BEFORE UPDATE ON "node_task" FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state)
  EXECUTE FUNCTION platform.guard_transition('node_task', 'state');
CREATE TRIGGER guard_transition BEFORE UPDATE ON "compute_node" FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
  EXECUTE FUNCTION platform.guard_transition('node', 'status');
CREATE TRIGGER guard_transition BEFORE UPDATE ON "manifest" FOR EACH ROW WHEN (OLD.stage IS DISTINCT FROM NEW.stage)
  EXECUTE FUNCTION platform.guard_transition('manifest', 'stage');
CREATE TRIGGER guard_transition BEFORE UPDATE ON "artifact" FOR EACH ROW WHEN (OLD.stage IS DISTINCT FROM NEW.stage)
  EXECUTE FUNCTION platform.guard_transition('artifact', 'stage');
