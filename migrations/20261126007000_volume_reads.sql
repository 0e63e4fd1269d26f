-- +goose Up
-- What the API tells of storage and of where files of volumes are, without naming nodes to tenants. See docs/adr/0119.

-- What the nodes that are online offer of each storage class: how many, and sums. A shared file system is the same on each.
-- +goose StatementBegin
CREATE FUNCTION platform.storage_offers() RETURNS TABLE (storage_class_id text, nodes integer, total_bytes bigint, free_bytes bigint, size_enforced boolean)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT c.id, count(*)::integer,
    CASE c.kind WHEN 'SHARED' THEN max((s ->> 'totalBytes')::bigint) ELSE sum((s ->> 'totalBytes')::bigint)::bigint END,
    CASE c.kind WHEN 'SHARED' THEN min((s ->> 'freeBytes')::bigint) ELSE sum((s ->> 'freeBytes')::bigint)::bigint END,
    bool_and((s ->> 'sizeEnforced')::boolean)
  FROM storage_class c JOIN compute_node n ON n.status = 'ONLINE' AND n.retired_at IS NULL AND jsonb_typeof(n.storage) = 'array'
    CROSS JOIN LATERAL jsonb_array_elements(n.storage) s
  WHERE s ->> 'name' = c.name AND s ->> 'kind' = c.kind AND s ->> 'reason' = '' GROUP BY c.id
$$;

-- The nodes where files of a volume are or were.
CREATE FUNCTION platform.volume_nodes(v volume) RETURNS text[]
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT coalesce(array_agg(n.node_id ORDER BY n.node_id), '{}') FROM volume_node n WHERE n.volume_id = v.id
$$;

-- A launch holds its volumes until it has committed: a deletion waits for it and finds the instance, or the launch finds the
-- deletion. Two launches with the same volume do not wait for each other.
CREATE OR REPLACE FUNCTION platform.guard_volumes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM FROM volume v WHERE v.id IN (SELECT b ->> 'volumeId' FROM jsonb_array_elements(NEW.volumes) b) ORDER BY v.id FOR KEY SHARE;
  IF EXISTS (SELECT FROM jsonb_array_elements(NEW.volumes) b WHERE NOT EXISTS (
      SELECT FROM volume v WHERE v.id = b ->> 'volumeId' AND v.project_id = NEW.project_id AND v.status = 'READY')) THEN
    RAISE EXCEPTION 'an instance uses volumes of its own project that are ready' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.storage_offers(), platform.volume_nodes(volume) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.storage_offers(), platform.volume_nodes(volume) TO app_api, app_operator;
