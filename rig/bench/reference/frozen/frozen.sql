-- How a transaction learned who calls at commit a3d4938, in a schema and for a login role of its own: the statements of
-- that commit's migrations with `platform` written as `frozen`. A scope was a set of settings, each with a seal over its
-- value, and every policy checked the seals again. It reads the tables of today, so that both sides read the same rows.
--
-- Of frozen.enter only a session's branch is here: the bench's callers are people, and a branch that is not taken is not
-- planned. The policies are those of the tables that the frozen handlers read.
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'app_frozen') THEN
    CREATE ROLE app_frozen LOGIN NOBYPASSRLS NOCREATEDB NOCREATEROLE NOINHERIT;
  END IF;
END $$;
SET LOCAL ROLE app_owner;
SET LOCAL client_min_messages = warning;
DROP SCHEMA IF EXISTS frozen CASCADE; -- and the policies that call its functions
CREATE SCHEMA frozen;
GRANT USAGE ON SCHEMA frozen TO app_frozen;
GRANT SELECT ON instance, member, operation, operation_step, app_instance_event TO app_frozen;
GRANT UPDATE ON instance TO app_frozen;
GRANT INSERT ON audit_entry TO app_frozen;
CREATE UNLOGGED SEQUENCE frozen.scope_secret MAXVALUE 9223372036854775807;
CREATE UNLOGGED SEQUENCE frozen.scope_moment MAXVALUE 9223372036854775807;

CREATE FUNCTION frozen.seal(secret bigint, setting text, value text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT left(encode(sha256(convert_to(secret::text || '|' || setting || '|' || value || '|' || secret::text, 'UTF8')), 'hex'), 32)
$$;

CREATE FUNCTION frozen.scope(setting text) RETURNS text[] LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE
  sealed text := pg_catalog.current_setting(setting, true);
  secret text;
BEGIN
  IF sealed IS NULL OR sealed = '' THEN RETURN NULL; END IF;
  secret := pg_catalog.currval('frozen.scope_secret'::pg_catalog.regclass)::text;
  IF pg_catalog.left(sealed, 32) = pg_catalog.left(pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(
      secret || '|' || setting || '|' || pg_catalog.substr(sealed, 33) || '|' || secret, 'UTF8')), 'hex'), 32) THEN
    RETURN pg_catalog.string_to_array(pg_catalog.substr(sealed, 33), ',');
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION frozen.set_scope(subject text, projects text[], tenants text[], seen text[], node text, attached text[])
  RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment bigint := (extract(epoch FROM now()) * 1000000)::bigint;
  entered bigint := 0;
  secret bigint;
BEGIN
  BEGIN
    entered := currval('frozen.scope_moment'::regclass);
  EXCEPTION WHEN object_not_in_prerequisite_state THEN NULL; -- the connection's first caller
  END;
  IF entered = moment THEN
    RAISE EXCEPTION 'the caller of a transaction is set once' USING ERRCODE = 'invalid_transaction_state';
  END IF;
  IF subject <> '' THEN
    PERFORM setval('frozen.scope_moment'::regclass, moment);
  END IF;
  secret := ('x' || right(replace(gen_random_uuid()::text, '-', ''), 15))::bit(60)::bigint + 1;
  PERFORM setval('frozen.scope_secret'::regclass, secret);
  PERFORM set_config(name, CASE WHEN value <> '' THEN frozen.seal(secret, name, value) || value ELSE '' END, true)
    FROM (VALUES ('app.subject', coalesce(subject, '')),
      ('app.projects', coalesce(array_to_string(projects, ','), '')),
      ('app.tenants', coalesce(array_to_string(tenants, ','), '')),
      ('app.seen_tenants', coalesce(array_to_string(seen, ','), '')),
      ('app.node', coalesce(node, '')),
      ('app.attached', coalesce(array_to_string(attached, ','), ''))) scope (name, value);
END $$;

CREATE FUNCTION frozen.bindings_of(person_id text) RETURNS jsonb LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  SELECT coalesce(jsonb_agg(jsonb_build_object('role', role, 'tenant', tenant_id, 'project', project_id, 'expires', expires_at)), '[]')
  FROM (SELECT * FROM role_binding WHERE user_id = person_id AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > now()) ORDER BY id LIMIT 100000) b
$$;

CREATE FUNCTION frozen.attached_to(projects text[]) RETURNS text[] LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  SELECT array_agg(instance_id) FROM (SELECT instance_id FROM control_plane_share
    WHERE project_id = ANY (projects) AND status = 'ATTACHED' AND ended_at IS NULL LIMIT 1000) s
$$;

CREATE FUNCTION frozen.enter(kind text, credential text, hash bytea,
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
    IF NOT FOUND THEN PERFORM frozen.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN; END IF;
    bindings := frozen.bindings_of(subject_id);
    SELECT array_agg(b ->> 'project') FILTER (WHERE b ->> 'project' IS NOT NULL),
           array_agg(b ->> 'tenant') FILTER (WHERE b ->> 'project' IS NULL AND b ->> 'tenant' IS NOT NULL),
           array_agg(b ->> 'tenant') FILTER (WHERE b ->> 'tenant' IS NOT NULL)
      INTO projects, tenants, seen FROM jsonb_array_elements(bindings) b;
    IF tenant IS NOT NULL THEN seen := array_append(seen, tenant); END IF;
    PERFORM frozen.set_scope(subject_id, projects, tenants, seen, NULL, frozen.attached_to(projects));
  ELSE
    PERFORM frozen.set_scope('', NULL, NULL, NULL, NULL, NULL);
  END CASE;
END $$;

REVOKE ALL ON SEQUENCE frozen.scope_secret, frozen.scope_moment FROM PUBLIC;
REVOKE ALL ON FUNCTION frozen.set_scope(text, text[], text[], text[], text, text[]), frozen.seal(bigint, text, text),
  frozen.bindings_of(text), frozen.attached_to(text[]), frozen.enter(text, text, bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION frozen.enter(text, text, bytea) TO app_frozen;

-- The policies of app_api at a3d4938.
CREATE POLICY frozen_attached ON instance FOR SELECT TO app_frozen
  USING (id = ANY ((SELECT frozen.scope('app.attached'))::text[]));
CREATE POLICY frozen_write ON audit_entry FOR INSERT TO app_frozen
  WITH CHECK (tenant_id IS NULL OR tenant_id = ANY ((SELECT frozen.scope('app.seen_tenants'))::text[]));
DO $$
DECLARE
  name text;
  own constant text := $q$(project_id = ANY ((SELECT frozen.scope('app.projects'))::text[])
    OR tenant_id = ANY ((SELECT frozen.scope('app.tenants'))::text[]))$q$;
BEGIN
  FOREACH name IN ARRAY ARRAY['instance', 'member', 'operation', 'operation_step', 'app_instance_event'] LOOP
    EXECUTE format('CREATE POLICY frozen_scope ON %I TO app_frozen USING %s WITH CHECK %2$s', name, own);
  END LOOP;
END $$;
