-- +goose Up
-- A canary's launches beside those of the active version, over all tenants and without a name of any.
CREATE INDEX "generation_manifest_id_created_at" ON "instance_generation" ("manifest_id", "created_at");

-- When a canary ended: its first step out of the stage since it began. Null while it is one.
-- +goose StatementBegin
CREATE FUNCTION platform.canary_until(m manifest) RETURNS timestamptz LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT min(p.created_at) FROM promotion p WHERE p.object_id = m.id AND p.from_stage = 'CANARY' AND p.to_stage <> 'CANARY'
    AND p.created_at >= m.canary_started_at
$$;
-- +goose StatementEnd

-- The version that a canary is held against: the one that is active, or was when the canary ended, by its first step from then
-- on. Null for none.
-- +goose StatementBegin
CREATE FUNCTION platform.canary_beside(m manifest) RETURNS text LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT b.id FROM manifest b WHERE b.app_slug = m.app_slug AND b.id <> m.id AND CASE WHEN platform.canary_until(m) IS NULL THEN b.stage
      ELSE coalesce((SELECT p.from_stage FROM promotion p WHERE p.object_id = b.id AND p.created_at >= platform.canary_until(m) ORDER BY p.id LIMIT 1), b.stage)
    END = 'ACTIVE' ORDER BY b.id DESC LIMIT 1
$$;
-- +goose StatementEnd

-- The first launches of a canary and of what it is held against, since it began and until it ended, smoke launches aside:
-- for the workers, the platform's staff and whoever reaches the app's publisher.
-- +goose StatementBegin
CREATE FUNCTION platform.canary_launches(wanted text, most integer, whole boolean)
  RETURNS TABLE (canary boolean, state text, began timestamptz, ended timestamptz, operations integer, operations_failed integer)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH c AS MATERIALIZED (SELECT m.id, m.canary_started_at AS since, platform.canary_until(m) AS until, platform.canary_beside(m) AS beside
      FROM manifest m JOIN app a ON a.id = m.app_id
      WHERE m.id = wanted AND m.canary_started_at IS NOT NULL AND (session_user <> 'app_api'
        OR a.publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
        OR a.publisher_project_id = ANY ((SELECT platform.scope('app.projects'))::text[]))),
    launch AS (SELECT g.manifest_id = c.id AS canary, g.instance_id, o.id, o.state, o.created_at, o.ended_at
      FROM c JOIN instance_generation g ON g.manifest_id IN (c.id, c.beside) AND g.number = 1 AND g.created_at >= c.since AND (c.until IS NULL OR g.created_at < c.until)
      JOIN instance i ON i.id = g.instance_id AND NOT i.smoke
      JOIN operation o ON o.id = g.operation_id
      ORDER BY g.created_at, g.id LIMIT most)
  SELECT l.canary, l.state, l.created_at, l.ended_at, coalesce(other.ended, 0)::integer, coalesce(other.failed, 0)::integer
  FROM launch l LEFT JOIN LATERAL (SELECT count(*) AS ended, count(*) FILTER (WHERE o.state = 'FAILED') AS failed FROM operation o
    WHERE whole AND o.instance_id = l.instance_id AND o.id <> l.id AND o.state IN ('SUCCEEDED', 'FAILED')) other ON true
  ORDER BY l.ended_at, l.id
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.canary_launches(text, integer, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.canary_launches(text, integer, boolean) TO app_api, app_operator, app_worker;

-- The reconciler halts canaries as a step of its own: the app is locked before the version, as by every promotion.
GRANT UPDATE (summary) ON app TO app_worker;
