-- +goose Up
-- "Later than" is a number that the database gives: the ids of two processes are by two clocks. Existing rows have none
-- and come first, so that nothing is written anew.
CREATE SEQUENCE row_order CACHE 1;
ALTER SEQUENCE row_order OWNER TO app_owner;
GRANT USAGE ON SEQUENCE row_order TO app_api, app_operator, app_node, app_worker;
-- modify "node_credential" table
ALTER TABLE "node_credential" ADD COLUMN "seq" bigint NULL;
ALTER TABLE "node_credential" ALTER COLUMN "seq" SET DEFAULT nextval('row_order'::regclass);
-- modify "node_task" table
ALTER TABLE "node_task" ADD COLUMN "seq" bigint NULL;
ALTER TABLE "node_task" ALTER COLUMN "seq" SET DEFAULT nextval('row_order'::regclass);
-- modify "operation" table
ALTER TABLE "operation" ADD COLUMN "seq" bigint NULL;
ALTER TABLE "operation" ALTER COLUMN "seq" SET DEFAULT nextval('row_order'::regclass);

-- A node's credential ends those that were written before it when it is first used.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.enter(kind text, credential text, hash bytea,
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
  WHEN 'key', 'exchange' THEN
    SELECT k.subject_kind, k.subject_id, k.subject_name, k.tenant, k.project, k.vouchers, k.allow, k.limits, k.expires
      INTO subject_kind, subject_id, subject_name, tenant, project, bindings, allow, limits, expires
      FROM platform.enter_key(kind, credential, hash) k;
    IF subject_kind IS DISTINCT FROM 'SERVICE_ACCOUNT' THEN
      PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN;
    END IF;
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
        WHERE node_id = subject_id AND id <> credential AND revoked_at IS NULL
          AND coalesce(seq, 0) <= (SELECT coalesce(c.seq, 0) FROM node_credential c WHERE c.id = credential);
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
