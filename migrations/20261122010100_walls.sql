-- +goose Up
-- The scope of a transaction cannot be forged by a statement that runs inside it. What platform.enter found
-- still lies in settings, which anybody may write, but each now carries a seal made with a secret of the
-- transaction's own, and a setting whose seal does not fit says nothing. The secret and the moment at which a
-- caller entered lie where a backend remembers them by itself and no login role can reach: as the session's own
-- value of two sequences (unlogged: no write-ahead log, no transaction id). See docs/adr/0015.
CREATE UNLOGGED SEQUENCE platform.scope_secret MAXVALUE 9223372036854775807;
CREATE UNLOGGED SEQUENCE platform.scope_moment MAXVALUE 9223372036854775807;

-- What a setting must begin with: half of the SHA-256 of the secret around the setting's name and value.
-- +goose StatementBegin
CREATE FUNCTION platform.seal(secret bigint, setting text, value text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT left(encode(sha256(convert_to(secret::text || '|' || setting || '|' || value || '|' || secret::text, 'UTF8')), 'hex'), 32)
$$;
-- +goose StatementEnd

-- Written out, not through platform.seal, and without a search path of its own: it runs several times a
-- statement. It names no table, and login roles can make no function or operator that it could take for another.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.scope(setting text) RETURNS text[] LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE
  sealed text := pg_catalog.current_setting(setting, true);
  secret text;
BEGIN
  IF sealed IS NULL OR sealed = '' THEN RETURN NULL; END IF;
  secret := pg_catalog.currval('platform.scope_secret'::pg_catalog.regclass)::text;
  IF pg_catalog.left(sealed, 32) = pg_catalog.left(pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(
      secret || '|' || setting || '|' || pg_catalog.substr(sealed, 33) || '|' || secret, 'UTF8')), 'hex'), 32) THEN
    RETURN pg_catalog.string_to_array(pg_catalog.substr(sealed, 33), ',');
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- Sets the scope of the transaction: once for a caller, so that a statement inside it cannot enter as another.
-- Whoever entered as nobody may still enter.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.set_scope(subject text, projects text[], tenants text[], seen text[], node text, attached text[])
  RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment bigint := (extract(epoch FROM now()) * 1000000)::bigint;
  entered bigint := 0;
  secret bigint;
BEGIN
  BEGIN
    entered := currval('platform.scope_moment'::regclass);
  EXCEPTION WHEN object_not_in_prerequisite_state THEN NULL; -- the connection's first caller
  END;
  IF entered = moment THEN
    RAISE EXCEPTION 'the caller of a transaction is set once' USING ERRCODE = 'invalid_transaction_state';
  END IF;
  IF subject <> '' THEN
    PERFORM setval('platform.scope_moment'::regclass, moment);
  END IF;
  secret := ('x' || right(replace(gen_random_uuid()::text, '-', ''), 15))::bit(60)::bigint + 1;
  PERFORM setval('platform.scope_secret'::regclass, secret);
  PERFORM set_config(name, CASE WHEN value <> '' THEN platform.seal(secret, name, value) || value ELSE '' END, true)
    FROM (VALUES ('app.subject', coalesce(subject, '')),
      ('app.projects', coalesce(array_to_string(projects, ','), '')),
      ('app.tenants', coalesce(array_to_string(tenants, ','), '')),
      ('app.seen_tenants', coalesce(array_to_string(seen, ','), '')),
      ('app.node', coalesce(node, '')),
      ('app.attached', coalesce(array_to_string(attached, ','), ''))) scope (name, value);
END $$;
-- +goose StatementEnd
REVOKE ALL ON SEQUENCE platform.scope_secret, platform.scope_moment FROM PUBLIC;
REVOKE ALL ON FUNCTION platform.set_scope(text, text[], text[], text[], text, text[]), platform.seal(bigint, text, text) FROM PUBLIC;

-- Policies that read a setting themselves go through the same gate.
ALTER POLICY api_scope ON person USING (
  id = (SELECT (platform.scope('app.subject'))[1]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
ALTER POLICY api_scope ON role_binding USING (
  user_id = (SELECT (platform.scope('app.subject'))[1])
  OR project_id = ANY ((SELECT platform.scope('app.projects'))::text[])
  OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
ALTER POLICY api_seen ON external_identity USING (
  user_id = (SELECT (platform.scope('app.subject'))[1])
  OR EXISTS (SELECT FROM person p WHERE p.id = user_id AND p.tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])));
ALTER POLICY api_seen ON session USING (
  user_id = (SELECT (platform.scope('app.subject'))[1])
  OR EXISTS (SELECT FROM person p WHERE p.id = user_id AND p.tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])));
ALTER POLICY node_self ON compute_node USING (id = (SELECT (platform.scope('app.node'))[1]))
  WITH CHECK (id = (SELECT (platform.scope('app.node'))[1]));
ALTER POLICY node_self ON node_task USING (node_id = (SELECT (platform.scope('app.node'))[1]))
  WITH CHECK (node_id = (SELECT (platform.scope('app.node'))[1]));
ALTER POLICY node_self ON node_credential USING (node_id = (SELECT (platform.scope('app.node'))[1]))
  WITH CHECK (node_id = (SELECT (platform.scope('app.node'))[1]));
ALTER POLICY node_self ON node_enrolment USING (node_id = (SELECT (platform.scope('app.node'))[1]))
  WITH CHECK (node_id = (SELECT (platform.scope('app.node'))[1]));
