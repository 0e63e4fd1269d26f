-- +goose Up
-- The scope of a transaction is a row, and the transaction keeps the row's number: nothing is sealed any more, and no
-- setting has a value worth forging. platform.enter finds out from bindings, shares and credentials who the caller is,
-- as ever and every time; a row only holds the result, so that none can be out of date. See docs/adr/0125.
--
-- A row never changes. It is entered by for an hour, and deleted after two, when no transaction of that hour still runs.
-- Unlogged: after a crash every caller's row is written again when it next enters.
DROP SEQUENCE platform.scope_secret; -- first: it waits until every transaction that entered by a seal has ended
CREATE UNLOGGED TABLE platform.access_scope (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  subject text NOT NULL,
  projects text[] NULL,
  tenants text[] NULL,
  seen text[] NULL,
  node text NULL,
  attached text[] NULL,
  written_at timestamptz NOT NULL
);
CREATE INDEX access_scope_subject ON platform.access_scope (subject, number);
CREATE INDEX access_scope_written ON platform.access_scope (written_at);
ALTER TABLE platform.access_scope OWNER TO app_owner;
ALTER TABLE platform.access_scope ENABLE ROW LEVEL SECURITY;
ALTER TABLE platform.access_scope FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON platform.access_scope TO app_owner USING (true) WITH CHECK (true);
REVOKE ALL ON platform.access_scope FROM PUBLIC, app_api, app_operator, app_node, app_worker;

-- The number of the caller's row. As scope_moment, which says in which transaction it holds, it is a session's own value of
-- a sequence that login roles may neither read nor write.
CREATE UNLOGGED SEQUENCE platform.scope_number MAXVALUE 9223372036854775807;
ALTER SEQUENCE platform.scope_number OWNER TO app_owner;
REVOKE ALL ON SEQUENCE platform.scope_number FROM PUBLIC, app_api, app_operator, app_node, app_worker;

-- Without a search path of its own, since it runs several times a statement: every name in it is qualified. The setting
-- app.entered spares a connection that has not entered the sequence's error; who forges it meets the sequences.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.scope(setting text) RETURNS text[] LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE
  own platform.access_scope;
BEGIN
  IF pg_catalog.current_setting('app.entered', true) IS DISTINCT FROM 'yes' THEN RETURN NULL; END IF;
  IF pg_catalog.currval('platform.scope_moment'::pg_catalog.regclass) OPERATOR(pg_catalog.<>)
      (pg_catalog.date_part('epoch', pg_catalog.now()) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8 THEN
    RETURN NULL;
  END IF;
  SELECT * INTO own FROM platform.access_scope s
    WHERE s.number OPERATOR(pg_catalog.=) (SELECT pg_catalog.currval('platform.scope_number'::pg_catalog.regclass));
  RETURN CASE setting
    WHEN 'app.projects' THEN own.projects
    WHEN 'app.tenants' THEN own.tenants
    WHEN 'app.subject' THEN ARRAY[own.subject]
    WHEN 'app.attached' THEN own.attached
    WHEN 'app.seen_tenants' THEN own.seen
    WHEN 'app.node' THEN ARRAY[own.node]
  END;
END $$;
-- +goose StatementEnd

-- Sets the scope of the transaction: once for a caller, so that a statement inside it cannot enter as another.
-- Whoever entered as nobody may still enter. A statement may make the session forget its sequences (DISCARD SEQUENCES), but
-- not release the lock that setting one took until the transaction's end: where the moment is forgotten, the lock decides.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.set_scope(subject text, projects text[], tenants text[], seen text[], node text, attached text[])
  RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment bigint := (date_part('epoch', now()) * 1000000)::bigint;
  found_number bigint;
  entered bigint;
BEGIN
  BEGIN
    entered := currval('platform.scope_moment'::regclass);
  EXCEPTION WHEN object_not_in_prerequisite_state THEN
    IF EXISTS (SELECT FROM pg_locks l WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation'
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
        AND l.relation = 'platform.scope_number'::regclass) THEN
      entered := moment;
    END IF;
  END;
  IF entered = moment THEN
    RAISE EXCEPTION 'the caller of a transaction is set once' USING ERRCODE = 'invalid_transaction_state';
  END IF;
  IF coalesce(subject, '') = '' THEN
    PERFORM setval('platform.scope_moment'::regclass, 1), set_config('app.entered', '', true);
    RETURN;
  END IF;
  SELECT s.number INTO found_number FROM platform.access_scope s
    WHERE s.subject = $1 AND s.written_at > now() - interval '1 hour'
      AND s.projects IS NOT DISTINCT FROM $2 AND s.tenants IS NOT DISTINCT FROM $3
      AND s.seen IS NOT DISTINCT FROM $4 AND s.node IS NOT DISTINCT FROM $5
      AND s.attached IS NOT DISTINCT FROM $6
    ORDER BY s.number DESC LIMIT 1;
  IF NOT FOUND THEN
    INSERT INTO platform.access_scope (subject, projects, tenants, seen, node, attached, written_at)
      VALUES (subject, projects, tenants, seen, node, attached, now()) RETURNING number INTO found_number;
    DELETE FROM platform.access_scope a WHERE a.number IN (SELECT s.number FROM platform.access_scope s
      WHERE s.written_at < now() - interval '2 hours' ORDER BY s.written_at LIMIT 10 FOR UPDATE SKIP LOCKED);
  END IF;
  PERFORM setval('platform.scope_moment'::regclass, moment), setval('platform.scope_number'::regclass, found_number),
    set_config('app.entered', 'yes', true);
END $$;
-- +goose StatementEnd
DROP FUNCTION platform.seal(bigint, text, text);

-- In PL/pgSQL, whose plans a connection keeps: PostgreSQL plans a function in SQL again in every transaction that calls it,
-- and entering calls both.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.bindings_of(person_id text) RETURNS jsonb LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  RETURN (SELECT coalesce(jsonb_agg(jsonb_build_object('role', b.role, 'tenant', b.tenant_id, 'project', b.project_id, 'expires', b.expires_at)), '[]')
    FROM (SELECT r.* FROM role_binding r WHERE r.user_id = person_id AND r.revoked_at IS NULL
      AND (r.expires_at IS NULL OR r.expires_at > now()) AND (r.made_under IS NULL OR platform.still_given(r.made_under))
      ORDER BY r.id LIMIT 100000) b);
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.attached_to(projects text[]) RETURNS text[] LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  RETURN (SELECT array_agg(s.instance_id) FROM (SELECT c.instance_id FROM control_plane_share c
    WHERE c.project_id = ANY (projects) AND c.status = 'ATTACHED' AND c.ended_at IS NULL LIMIT 1000) s);
END $$;
-- +goose StatementEnd
