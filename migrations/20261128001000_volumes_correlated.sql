-- +goose Up
-- What happens to a volume carries the correlation of the request that brought it about, as what happens to allocations does:
-- its row has that of the last request that made, grew or deleted it, or took its node out for good. What a node proves later
-- ends what that request began. See docs/adr/0123.
ALTER TABLE volume
  ADD COLUMN correlation_id text NOT NULL DEFAULT '', -- of the last request that changed it
  ADD COLUMN trace_id text NOT NULL DEFAULT '';       -- and its trace

-- As before, with the volume's correlation and trace.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.tell_volume() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE what text; saying text; class text := (SELECT c.name FROM storage_class c WHERE c.id = NEW.storage_class_id);
BEGIN
  FOR what, saying IN
    SELECT e.kind, e.message FROM (VALUES
      (1, 'created', TG_OP = 'INSERT', 'created, ' || NEW.size_gib || ' GiB of ' || class),
      (2, 'ready', TG_OP = 'UPDATE' AND OLD.present_at IS NULL AND NEW.present_at IS NOT NULL, 'is ready: a node has its files'),
      (3, 'resized', TG_OP = 'UPDATE' AND OLD.size_gib <> NEW.size_gib, 'has ' || NEW.size_gib || ' GiB'),
      (4, 'failed', TG_OP = 'UPDATE' AND OLD.lost_at IS NULL AND NEW.lost_at IS NOT NULL, 'is lost: ' || NEW.message),
      (5, 'deleting', TG_OP = 'UPDATE' AND OLD.status = 'READY' AND NEW.status <> 'READY', 'is being deleted'),
      (6, 'deleted', TG_OP = 'UPDATE' AND OLD.status <> 'DELETED' AND NEW.status = 'DELETED', 'is deleted, and nothing is left of it'))
      e (n, kind, holds, message) WHERE e.holds ORDER BY e.n
  LOOP
    INSERT INTO app_instance_event (id, tenant_id, project_id, volume_id, seq, type, app_slug, permission_family, message, payload, correlation_id, trace_id, occurred_at)
      SELECT platform.mint('evt'), NEW.tenant_id, NEW.project_id, NEW.id, coalesce(max(e.seq), 0) + 1, 'apps.volume.' || what, '', 'volume', 'volume ' || NEW.name || ' ' || saying,
        jsonb_build_object('volume', NEW.id, 'name', NEW.name, 'storageClass', class, 'sizeGiB', NEW.size_gib), NEW.correlation_id, NEW.trace_id, clock_timestamp()
      FROM app_instance_event e WHERE e.volume_id = NEW.id;
    -- With the commit: verbs wake by themselves, and an agent's report or a node's end, which are rare, have no other way.
    PERFORM pg_notify('app_platform_wake', 'volume|p:' || NEW.project_id);
  END LOOP;
  RETURN NULL;
END $$;
-- +goose StatementEnd
