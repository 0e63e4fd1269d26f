-- +goose Up
-- What happens to a volume is in its project's feed, under a family of its own, as what happens to allocations is: a server of an
-- older build does not read it. It is written where the volume is, so that a node's report, an operator's retirement of a node
-- and the verbs all tell it, with what they change or not at all. See docs/adr/0123.
ALTER TABLE volume ADD UNIQUE (id, tenant_id);
ALTER TABLE "app_instance_event" ADD COLUMN "volume_id" text NULL, DROP CONSTRAINT app_instance_event_of_one, DROP CONSTRAINT app_instance_event_family,
  ADD CONSTRAINT app_instance_event_of_one CHECK (num_nonnulls(instance_id, allocation_id, volume_id) = 1) NOT VALID,
  ADD CONSTRAINT app_instance_event_family CHECK ((allocation_id IS NOT NULL) = (permission_family = 'allocation') AND (volume_id IS NOT NULL) = (permission_family = 'volume')) NOT VALID,
  ADD FOREIGN KEY (volume_id, tenant_id) REFERENCES volume (id, tenant_id);
CREATE UNIQUE INDEX "event_volume_id_seq" ON "app_instance_event" ("volume_id", "seq") WHERE (volume_id IS NOT NULL);

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.place_event() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  NEW.xid := greatest(pg_current_xact_id()::text::bigint, (SELECT e.xid FROM app_instance_event e
    WHERE (e.instance_id = NEW.instance_id OR e.allocation_id = NEW.allocation_id OR e.volume_id = NEW.volume_id) AND e.seq = NEW.seq - 1 AND e.generation = NEW.generation));
  RETURN NEW;
END $$;

-- An id of a kind, as domain/ids mints them: a UUIDv7 of now in 26 characters of Crockford's base32.
CREATE FUNCTION platform.mint(kind text) RETURNS text LANGUAGE sql VOLATILE SET search_path = public, pg_temp AS $$
  SELECT kind || '_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', (substring(b FROM 5 * n + 1 FOR 5))::integer + 1, 1), '' ORDER BY n)
  FROM (SELECT B'00' || (extract(epoch FROM clock_timestamp()) * 1000)::bigint::bit(48) || B'0111' || substring(r FROM 1 FOR 12) || B'10' || substring(r FROM 13 FOR 62) AS b
      FROM (SELECT ('x' || replace(gen_random_uuid()::text, '-', ''))::bit(128) AS r) u) v
    CROSS JOIN generate_series(0, 25) n
$$;

CREATE FUNCTION platform.tell_volume() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
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
        jsonb_build_object('volume', NEW.id, 'name', NEW.name, 'storageClass', class, 'sizeGiB', NEW.size_gib), '', '', clock_timestamp()
      FROM app_instance_event e WHERE e.volume_id = NEW.id;
    -- With the commit: verbs wake by themselves, and an agent's report or a node's end, which are rare, have no other way.
    PERFORM pg_notify('app_platform_wake', 'volume|p:' || NEW.project_id);
  END LOOP;
  RETURN NULL;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.mint(text), platform.tell_volume() FROM PUBLIC;
CREATE TRIGGER tell_volume AFTER INSERT ON volume FOR EACH ROW EXECUTE FUNCTION platform.tell_volume();
CREATE TRIGGER tell_volume_change AFTER UPDATE OF present_at, size_gib, status, lost_at ON volume FOR EACH ROW
  WHEN ((OLD.present_at, OLD.size_gib, OLD.status, OLD.lost_at) IS DISTINCT FROM (NEW.present_at, NEW.size_gib, NEW.status, NEW.lost_at))
  EXECUTE FUNCTION platform.tell_volume();
