-- +goose Up
-- What keeps members apart on a node, and its GPUs by identity; null where the agent has never reported it.
ALTER TABLE "compute_node" ADD COLUMN "walls" jsonb NULL, ADD COLUMN "devices" jsonb NULL;
-- The GPUs that an allocation holds, what its members share of the node, and the class that they are to have at least.
ALTER TABLE "allocation" ADD COLUMN "devices" jsonb NULL, ADD COLUMN "memory_mib" bigint NULL, ADD COLUMN "cpu_millis" bigint NULL,
  ADD COLUMN "isolation_class" character varying NULL;
ALTER TABLE "member" ADD COLUMN "profile" character varying NOT NULL DEFAULT 'SERVICE', ADD COLUMN "isolation_class" character varying NULL,
  ADD COLUMN "max_pids" bigint NOT NULL DEFAULT 16384;
ALTER TABLE "node_task" ADD COLUMN "binding" jsonb NULL;

-- Which allocation holds which device of a node: the key is what lets no two of them hold the same one. It follows the
-- allocations' own lists by a trigger, so that no way of releasing one can forget it, and nobody else writes or reads it.
CREATE TABLE device_hold (
  node_id text NOT NULL REFERENCES compute_node (id),
  device_uuid text NOT NULL,
  device_index bigint NOT NULL,
  allocation_id text NOT NULL REFERENCES allocation (id),
  PRIMARY KEY (node_id, device_uuid));
CREATE INDEX device_hold_allocation ON device_hold (allocation_id);
ALTER TABLE device_hold ENABLE ROW LEVEL SECURITY;
ALTER TABLE device_hold FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON device_hold TO app_owner USING (true) WITH CHECK (true);

-- +goose StatementBegin
CREATE FUNCTION platform.hold_devices() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  DELETE FROM device_hold WHERE allocation_id = NEW.id;
  IF NEW.released_at IS NULL AND NEW.node_id IS NOT NULL AND jsonb_typeof(NEW.devices) = 'array' THEN
    INSERT INTO device_hold (node_id, device_uuid, device_index, allocation_id)
      SELECT NEW.node_id, d ->> 'uuid', (d ->> 'index')::bigint, NEW.id FROM jsonb_array_elements(NEW.devices) d;
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER hold_devices AFTER INSERT OR UPDATE OF devices, node_id, released_at ON allocation
  FOR EACH ROW EXECUTE FUNCTION platform.hold_devices();

-- The devices of a node: those that its agent reports, or as many without an identity as it has GPUs.
-- +goose StatementBegin
CREATE FUNCTION platform.node_devices(n compute_node) RETURNS jsonb
  LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT CASE WHEN jsonb_typeof(n.devices) = 'array' THEN n.devices ELSE (SELECT coalesce(jsonb_agg(jsonb_build_object(
      'uuid', 'unreported-' || i, 'index', i, 'minor', i, 'pciAddress', '', 'path', '/dev/nvidia' || i, 'model', n.gpu_model,
      'memoryMiB', 0, 'simulated', n.gpus_simulated, 'cdi', '') ORDER BY i), '[]') FROM generate_series(0, n.gpus - 1) i) END
$$;
-- +goose StatementEnd

-- Allocations from before identities: the node's devices in the order in which they were rented, and their share of the node.
WITH held AS (
  SELECT a.id, a.node_id, a.gpu_count, a.shape,
    sum(a.gpu_count) OVER (PARTITION BY a.node_id ORDER BY a.created_at, a.id) - a.gpu_count AS passed
  FROM allocation a WHERE a.released_at IS NULL AND a.node_id IS NOT NULL)
UPDATE allocation SET
  devices = (SELECT coalesce(jsonb_agg(d.value ORDER BY d.position), '[]') FROM jsonb_array_elements(platform.node_devices(n)) WITH ORDINALITY d(value, position)
    WHERE d.position > held.passed AND d.position <= held.passed + held.gpu_count),
  memory_mib = CASE WHEN held.shape = 'GPU_SLICE' THEN greatest(n.memory_mib * least(greatest(held.gpu_count, 1), greatest(n.gpus, 1)) / greatest(n.gpus, 1), 64) END,
  cpu_millis = CASE WHEN held.shape = 'GPU_SLICE' THEN greatest(n.cpus * 1000 * least(greatest(held.gpu_count, 1), greatest(n.gpus, 1)) / greatest(n.gpus, 1), 100) END
FROM held JOIN compute_node n ON n.id = held.node_id WHERE allocation.id = held.id;

-- Members of launchable apps have run containers all along.
UPDATE member SET profile = 'NESTING' FROM instance i JOIN manifest m ON m.id = i.manifest_id
  WHERE i.id = member.instance_id AND m.artifact_kind = 'launchable' AND member.status <> 'REMOVED';

-- What an agent reports of its devices reaches the allocations that hold them: a device without an identity gets that of
-- the same number, and one whose place has changed its new place. One that is not reported any more stays as it was.
-- +goose StatementBegin
CREATE FUNCTION platform.name_devices() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF jsonb_typeof(NEW.devices) = 'array' THEN
    UPDATE allocation SET devices = named.devices FROM (
      SELECT a.id, jsonb_agg(coalesce(same.value, CASE WHEN starts_with(d.value ->> 'uuid', 'unreported-') THEN there.value END, d.value) ORDER BY d.position) AS devices
      FROM allocation a CROSS JOIN LATERAL jsonb_array_elements(a.devices) WITH ORDINALITY d(value, position)
      LEFT JOIN LATERAL (SELECT r.value FROM jsonb_array_elements(NEW.devices) r WHERE r.value ->> 'uuid' = d.value ->> 'uuid') same ON true
      LEFT JOIN LATERAL (SELECT r.value FROM jsonb_array_elements(NEW.devices) r WHERE r.value ->> 'index' = d.value ->> 'index') there ON true
      WHERE a.node_id = NEW.id AND a.released_at IS NULL AND jsonb_typeof(a.devices) = 'array' GROUP BY a.id) named
    WHERE allocation.id = named.id AND allocation.devices <> named.devices;
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER name_devices AFTER UPDATE OF devices ON compute_node FOR EACH ROW
  WHEN (NEW.devices IS DISTINCT FROM OLD.devices) EXECUTE FUNCTION platform.name_devices();

-- The walls of a member as its node is to build them. Each of its tasks carries them from the moment that it is asked for,
-- whoever asks.
-- +goose StatementBegin
CREATE FUNCTION platform.member_binding(wanted text) RETURNS jsonb
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT jsonb_build_object('allocationId', a.id, 'exclusive', a.shape = 'BAREMETAL', 'profile', m.profile, 'class', m.isolation_class,
    'devices', coalesce(a.devices, '[]'), 'memoryMiB', a.memory_mib, 'cpuMillis', a.cpu_millis, 'pids', m.max_pids)
  FROM member m JOIN allocation a ON a.id = m.allocation_id WHERE m.id = wanted
$$;
CREATE FUNCTION platform.bind_task() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  NEW.binding := platform.member_binding(NEW.member_id);
  RETURN NEW;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.member_binding(text) FROM PUBLIC;
CREATE TRIGGER bind_task BEFORE INSERT ON node_task FOR EACH ROW EXECUTE FUNCTION platform.bind_task();

DROP FUNCTION platform.pick_node(text, bigint, text, text, text[], text[], text[], text[]);

-- A node for an allocation, its row locked until the commit, with the devices that it would hold. demanding shuts out nodes
-- whose agents have never reported their walls; classes are those that will do.
-- +goose StatementBegin
CREATE FUNCTION platform.pick_node(wanted_shape text, wanted_gpus bigint, wanted_sku text, wanted_region text,
    only_skus text[], not_skus text[], only_regions text[], not_regions text[], classes text[], demanding boolean, wanted_profile text)
  RETURNS TABLE (node_id text, node_gpus bigint, node_region text, node_sku text, node_cpus bigint, node_memory_mib bigint, held_devices jsonb)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE candidate record; used bigint; whole boolean; locked compute_node; chosen jsonb;
BEGIN
  FOR candidate IN
    SELECT n.id FROM compute_node n
    LEFT JOIN LATERAL (SELECT coalesce(sum(a.gpu_count), 0) AS used, count(*) AS held FROM allocation a
      WHERE a.node_id = n.id AND a.released_at IS NULL) h ON true
    WHERE n.status = 'ONLINE' AND (wanted_sku = '' OR n.sku = wanted_sku) AND (wanted_region = '' OR n.region = wanted_region)
      AND (only_skus IS NULL OR n.sku = ANY (only_skus)) AND NOT n.sku = ANY (coalesce(not_skus, '{}'))
      AND (only_regions IS NULL OR n.region = ANY (only_regions)) AND NOT n.region = ANY (coalesce(not_regions, '{}'))
      AND platform.offers_walls(n.walls, classes, demanding, wanted_profile)
      AND CASE WHEN wanted_shape = 'BAREMETAL' THEN h.held = 0 ELSE n.gpus - h.used >= wanted_gpus END
    ORDER BY CASE WHEN wanted_shape = 'BAREMETAL' THEN 0 ELSE n.gpus - h.used END, n.name
    LIMIT 100
  LOOP
    SELECT n.* INTO locked FROM compute_node n WHERE n.id = candidate.id AND n.status = 'ONLINE' FOR UPDATE;
    CONTINUE WHEN NOT FOUND OR NOT platform.offers_walls(locked.walls, classes, demanding, wanted_profile);
    SELECT coalesce(sum(a.gpu_count), 0), bool_or(a.shape = 'BAREMETAL') INTO used, whole
      FROM allocation a WHERE a.node_id = candidate.id AND a.released_at IS NULL;
    IF wanted_shape = 'BAREMETAL' THEN
      CONTINUE WHEN whole IS NOT NULL;
    ELSE
      CONTINUE WHEN coalesce(whole, false) OR locked.gpus - used < wanted_gpus;
    END IF;
    SELECT coalesce(jsonb_agg(d.value ORDER BY (d.value ->> 'index')::bigint), '[]') INTO chosen FROM (
      SELECT e.value FROM jsonb_array_elements(platform.node_devices(locked)) e WHERE NOT EXISTS (SELECT FROM device_hold h
        WHERE h.node_id = locked.id AND (h.device_uuid = e.value ->> 'uuid' OR h.device_index = (e.value ->> 'index')::bigint))
      ORDER BY (e.value ->> 'index')::bigint LIMIT CASE WHEN wanted_shape = 'BAREMETAL' THEN NULL ELSE wanted_gpus END) d;
    CONTINUE WHEN wanted_shape <> 'BAREMETAL' AND jsonb_array_length(chosen) < wanted_gpus;
    RETURN QUERY SELECT locked.id, locked.gpus, locked.region, locked.sku, locked.cpus, locked.memory_mib, chosen;
    RETURN;
  END LOOP;
END $$;

-- Whether a node's walls will do: one of the classes, and the profile where one is wanted.
CREATE FUNCTION platform.offers_walls(walls jsonb, classes text[], demanding boolean, wanted_profile text) RETURNS boolean
  LANGUAGE sql IMMUTABLE SET search_path = public, pg_temp AS $$
  SELECT CASE WHEN walls IS NULL THEN NOT demanding
    ELSE (walls -> 'classes') ?| classes AND (wanted_profile = '' OR (walls -> 'profiles') ? wanted_profile) END
$$;

-- Whether any node that is not retired has such walls, room or not.
CREATE FUNCTION platform.any_walls(classes text[], demanding boolean, wanted_profile text) RETURNS boolean
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT EXISTS (SELECT FROM compute_node n WHERE n.status <> 'RETIRED' AND platform.offers_walls(n.walls, classes, demanding, wanted_profile))
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.pick_node(text, bigint, text, text, text[], text[], text[], text[], text[], boolean, text),
  platform.any_walls(text[], boolean, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.pick_node(text, bigint, text, text, text[], text[], text[], text[], text[], boolean, text),
  platform.any_walls(text[], boolean, text) TO app_api, app_operator;
