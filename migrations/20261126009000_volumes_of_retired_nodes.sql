-- +goose Up
-- A local volume ends with its node: one that is retired deletes nothing any more. A shared one is on the file system still,
-- whichever node is gone. See docs/adr/0119.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.volume_nodes(v volume) RETURNS text[]
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT coalesce(array_agg(n.node_id ORDER BY n.node_id), '{}') FROM volume_node n WHERE n.volume_id = v.id
    AND NOT EXISTS (SELECT FROM compute_node c WHERE c.id = v.node_id AND c.id = n.node_id AND c.retired_at IS NOT NULL)
$$;
CREATE FUNCTION platform.retire_volumes() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE volume SET status = 'DELETED', deleted_at = now(), updated_at = now(), message = 'its node was taken out for good, and its files with it'
    WHERE status = 'DELETING' AND node_id = NEW.id;
  RETURN NULL;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.retire_volumes() FROM PUBLIC;
CREATE TRIGGER retire_volumes AFTER UPDATE OF retired_at ON compute_node FOR EACH ROW
  WHEN (NEW.retired_at IS NOT NULL AND OLD.retired_at IS NULL) EXECUTE FUNCTION platform.retire_volumes();
