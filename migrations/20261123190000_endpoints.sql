-- +goose Up
-- People reach what runs: what they have opened, and which process holds the connection of a node's agent. Not Ent's: plain
-- statements alone read and write them. See docs/adr/0084.

-- An endpoint that somebody has opened in a browser. It acts by the credential it was opened with, and ends with it.
CREATE TABLE endpoint_opening (
  id text PRIMARY KEY,
  tenant_id text NOT NULL,
  project_id text NOT NULL,
  instance_id text NOT NULL,
  endpoint text NOT NULL,
  credential_kind text NOT NULL CHECK (credential_kind IN ('session', 'exchange')),
  credential_id text NOT NULL,
  ticket_hash bytea NOT NULL,                 -- SHA-256 of the one-time ticket
  ticket_ends_at timestamptz NOT NULL,
  redeemed_at timestamptz,
  secret_hash bytea,                          -- SHA-256 of the cookie's secret
  expires_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL,
  FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id),
  FOREIGN KEY (instance_id, tenant_id) REFERENCES instance (id, tenant_id)
);
CREATE INDEX endpoint_opening_expires ON endpoint_opening (expires_at);
CREATE INDEX endpoint_opening_instance ON endpoint_opening (instance_id);

-- Which process holds the connection of a node's agent, and where other processes reach it.
CREATE TABLE node_tunnel (
  node_id text PRIMARY KEY REFERENCES compute_node (id),
  process_id text NOT NULL,
  address text NOT NULL,
  connected_at timestamptz NOT NULL
);

-- A ticket is used once, within its seconds.
CREATE FUNCTION platform.redeem_opening(opening text, ticket bytea, fresh bytea) RETURNS timestamptz
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE endpoint_opening SET redeemed_at = now(), secret_hash = fresh
    WHERE id = opening AND ticket_hash = ticket AND redeemed_at IS NULL AND ticket_ends_at > now() RETURNING expires_at $$;

-- Who shows an opening is who opened it, for as long as what it was opened with holds. A session that was rotated goes on in
-- the one that took its place.
-- +goose StatementBegin
CREATE FUNCTION platform.enter_opening(credential text, hash bytea,
  OUT subject_kind text, OUT subject_id text, OUT subject_name text, OUT tenant text, OUT project text,
  OUT bindings jsonb, OUT allow jsonb, OUT expires timestamptz, OUT limits jsonb)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE by_kind text; by_id text; by_hash bytea; ends timestamptz; next_id text;
BEGIN
  SELECT o.credential_kind, o.credential_id, o.expires_at INTO by_kind, by_id, ends FROM endpoint_opening o
    WHERE o.id = credential AND o.secret_hash = hash AND o.expires_at > now();
  IF by_kind = 'session' THEN
    FOR hop IN 1..100 LOOP
      SELECT s.secret_hash, s.replaced_by INTO by_hash, next_id FROM session s WHERE s.id = by_id;
      EXIT WHEN next_id IS NULL;
      by_id := next_id;
    END LOOP;
  END IF;
  SELECT e.* INTO subject_kind, subject_id, subject_name, tenant, project, bindings, allow, expires, limits
    FROM platform.enter(coalesce(by_kind, ''), by_id, by_hash) e;
  expires := least(expires, ends);
END $$;
-- +goose StatementEnd

-- Openings that are over are forgotten after a day.
CREATE FUNCTION platform.forget_openings() RETURNS bigint
  LANGUAGE sql VOLATILE SET search_path = public, pg_temp AS $$
  WITH gone AS (
    DELETE FROM endpoint_opening WHERE id IN (
      SELECT id FROM endpoint_opening WHERE expires_at < now() - interval '1 day' LIMIT 1000) RETURNING id
  )
  SELECT count(*) FROM gone $$;

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['endpoint_opening', 'node_tunnel'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY owner_all ON %I TO app_owner USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY worker_all ON %I TO app_worker USING (true) WITH CHECK (true)', t);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO app_worker', t);
  END LOOP;
END $$;
-- +goose StatementEnd
CREATE POLICY operator_all ON endpoint_opening TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON endpoint_opening TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[])
  OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]))
  WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
GRANT INSERT, SELECT (id, instance_id, endpoint) ON endpoint_opening TO app_api, app_operator;
REVOKE ALL ON FUNCTION platform.redeem_opening(text, bytea, bytea), platform.enter_opening(text, bytea),
  platform.forget_openings() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.forget_openings() TO app_worker;
GRANT EXECUTE ON FUNCTION platform.redeem_opening(text, bytea, bytea) TO app_api;
GRANT EXECUTE ON FUNCTION platform.enter_opening(text, bytea) TO app_api, app_operator;
