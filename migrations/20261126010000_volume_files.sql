-- +goose Up
-- Files of volumes are brought in and out through the agents of nodes. See docs/adr/0122.

-- The nodes that serve the files of a volume now, at most four: of a local one its node, of a shared one those that are online
-- and offer the class, the one that would delete it first. The volume may come to be there, so that the first is noted where
-- none was: its deletion is proved then.
-- +goose StatementBegin
CREATE FUNCTION platform.open_volume(v volume) RETURNS text[]
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE places text[];
BEGIN
  SELECT CASE c.kind
      WHEN 'LOCAL' THEN (SELECT array_agg(n.id) FROM compute_node n WHERE n.id = v.node_id AND n.retired_at IS NULL)
      ELSE (SELECT array_agg(o.id ORDER BY o.id) FROM (
        SELECT n.id FROM compute_node n WHERE n.status = 'ONLINE' AND n.retired_at IS NULL AND jsonb_typeof(n.storage) = 'array'
          AND EXISTS (SELECT FROM jsonb_array_elements(n.storage) s WHERE s ->> 'name' = c.name AND s ->> 'kind' = c.kind AND s ->> 'reason' = '')
        ORDER BY n.id LIMIT 4) o) END
    INTO places FROM storage_class c WHERE c.id = v.storage_class_id;
  IF places IS NOT NULL AND NOT EXISTS (SELECT FROM volume_node n WHERE n.volume_id = v.id) THEN
    INSERT INTO volume_node (volume_id, node_id) VALUES (v.id, places[1]) ON CONFLICT DO NOTHING;
  END IF;
  RETURN coalesce(places, '{}');
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.open_volume(volume) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.open_volume(volume) TO app_api, app_operator;
