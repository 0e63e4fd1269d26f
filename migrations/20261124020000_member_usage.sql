-- +goose Up
-- What each member uses now: the newest sample of its node's agent. Not Ent's: plain statements alone read and write it.
-- Unlogged, since it is written again every ten seconds: a crash of the database empties it for that long. See docs/adr/0080.
CREATE UNLOGGED TABLE member_usage (
  member_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  project_id text NOT NULL,
  node_id text NOT NULL,
  at timestamptz NOT NULL,
  sample jsonb NOT NULL
) WITH (fillfactor = 50);                     -- room beside each row, so that a new version needs no new entry of an index
CREATE INDEX member_usage_node ON member_usage (node_id);

-- The calling node's samples, by member. Members that are not on it are ignored; those of it that are not measured any more
-- are forgotten.
-- +goose StatementBegin
CREATE FUNCTION platform.note_usage(members text[], samples jsonb[]) RETURNS void
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  DELETE FROM member_usage WHERE node_id = (SELECT (platform.scope('app.node'))[1]) AND member_id <> ALL (members);
  INSERT INTO member_usage AS u (member_id, tenant_id, project_id, node_id, at, sample)
    SELECT m.id, m.tenant_id, m.project_id, m.node_id, now(), given.sample
    FROM unnest(members, samples) AS given (id, sample) JOIN member m ON m.id = given.id
    WHERE m.node_id = (SELECT (platform.scope('app.node'))[1]) AND m.status <> 'REMOVED'
    ORDER BY m.id
    ON CONFLICT (member_id) DO UPDATE SET node_id = excluded.node_id, at = excluded.at, sample = excluded.sample;
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.note_usage(text[], jsonb[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.note_usage(text[], jsonb[]) TO app_node;

ALTER TABLE member_usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE member_usage FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON member_usage TO app_owner USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON member_usage TO app_worker USING (true) WITH CHECK (true);
CREATE POLICY operator_all ON member_usage TO app_operator USING (true);
CREATE POLICY api_scope ON member_usage TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[])
  OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
GRANT SELECT ON member_usage TO app_api, app_operator;
GRANT SELECT, DELETE ON member_usage TO app_worker;
-- +goose Down
