-- +goose Up
-- Placing waits for a node's row no longer than it must. A launch places up to 64 allocations in one transaction, which has
-- its number from its first write on: whatever it waits for holds back every feed of the server.

-- Whether a node's row, if there is one, could be locked until the commit in time.
-- +goose StatementBegin
CREATE FUNCTION platform.hold_node(wanted text, patience_ms bigint) RETURNS boolean
  LANGUAGE plpgsql VOLATILE SET search_path = public, pg_temp AS $$
DECLARE before text := current_setting('lock_timeout'); held boolean := false;
BEGIN
  BEGIN
    PERFORM set_config('lock_timeout', patience_ms || 'ms', true);
    PERFORM FROM compute_node WHERE id = wanted FOR UPDATE;
    held := true;
  EXCEPTION WHEN lock_not_available THEN NULL;
  END;
  PERFORM set_config('lock_timeout', before, true);
  RETURN held;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.hold_node(text, bigint) FROM PUBLIC;

-- What an allocation would hold of a locked node; nothing where it has no such walls or no room.
-- +goose StatementBegin
CREATE FUNCTION platform.room_on(locked compute_node, wanted_shape text, wanted_gpus bigint, classes text[], demanding boolean, wanted_profile text)
  RETURNS jsonb LANGUAGE plpgsql VOLATILE SET search_path = public, pg_temp AS $$
DECLARE used bigint; whole boolean; chosen jsonb;
BEGIN
  IF locked.id IS NULL OR NOT platform.offers_walls(locked.walls, classes, demanding, wanted_profile) THEN RETURN NULL; END IF;
  SELECT coalesce(sum(a.gpu_count), 0), bool_or(a.shape = 'BAREMETAL') INTO used, whole
    FROM allocation a WHERE a.node_id = locked.id AND a.released_at IS NULL;
  IF wanted_shape = 'BAREMETAL' AND whole IS NOT NULL THEN RETURN NULL; END IF;
  IF wanted_shape <> 'BAREMETAL' AND (coalesce(whole, false) OR locked.gpus - used < wanted_gpus) THEN RETURN NULL; END IF;
  SELECT coalesce(jsonb_agg(d.value ORDER BY (d.value ->> 'index')::bigint), '[]') INTO chosen FROM (
    SELECT e.value FROM jsonb_array_elements(platform.node_devices(locked)) e WHERE NOT EXISTS (SELECT FROM device_hold h
      WHERE h.node_id = locked.id AND (h.device_uuid = e.value ->> 'uuid' OR h.device_index = (e.value ->> 'index')::bigint))
    ORDER BY (e.value ->> 'index')::bigint LIMIT CASE WHEN wanted_shape = 'BAREMETAL' THEN NULL ELSE wanted_gpus END) d;
  IF wanted_shape <> 'BAREMETAL' AND jsonb_array_length(chosen) < wanted_gpus THEN RETURN NULL; END IF;
  RETURN chosen;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.room_on(compute_node, text, bigint, text[], boolean, text) FROM PUBLIC;

-- A node for an allocation, its row locked until the commit, with the devices that it would hold. demanding shuts out nodes
-- whose agents have never reported their walls; classes are those that will do. A node that somebody else holds for more
-- than a moment is passed over; where only such nodes are left, the transaction waits for them until it is three seconds
-- old, and is then refused with lock_not_available.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.pick_node(wanted_shape text, wanted_gpus bigint, wanted_sku text, wanted_region text,
    only_skus text[], not_skus text[], only_regions text[], not_regions text[], classes text[], demanding boolean, wanted_profile text)
  RETURNS TABLE (node_id text, node_gpus bigint, node_region text, node_sku text, node_cpus bigint, node_memory_mib bigint, held_devices jsonb)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE candidates text[]; busy text[] := '{}'; candidate text; locked compute_node; chosen jsonb; patience bigint := 100;
BEGIN
  candidates := ARRAY(
    SELECT n.id FROM compute_node n
    LEFT JOIN LATERAL (SELECT coalesce(sum(a.gpu_count), 0) AS used, count(*) AS held FROM allocation a
      WHERE a.node_id = n.id AND a.released_at IS NULL) h ON true
    WHERE n.status = 'ONLINE' AND (wanted_sku = '' OR n.sku = wanted_sku) AND (wanted_region = '' OR n.region = wanted_region)
      AND (only_skus IS NULL OR n.sku = ANY (only_skus)) AND NOT n.sku = ANY (coalesce(not_skus, '{}'))
      AND (only_regions IS NULL OR n.region = ANY (only_regions)) AND NOT n.region = ANY (coalesce(not_regions, '{}'))
      AND platform.offers_walls(n.walls, classes, demanding, wanted_profile)
      AND CASE WHEN wanted_shape = 'BAREMETAL' THEN h.held = 0 ELSE n.gpus - h.used >= wanted_gpus END
    ORDER BY CASE WHEN wanted_shape = 'BAREMETAL' THEN 0 ELSE n.gpus - h.used END, n.name
    LIMIT 100);
  FOR pass IN 1..2 LOOP
    FOREACH candidate IN ARRAY candidates LOOP
      IF pass = 2 THEN
        patience := greatest(3000 - (extract(epoch FROM clock_timestamp() - transaction_timestamp()) * 1000)::bigint, 1);
      END IF;
      IF NOT platform.hold_node(candidate, patience) THEN
        IF pass = 2 THEN
          RAISE EXCEPTION 'node % is held by another transaction', candidate USING ERRCODE = 'lock_not_available';
        END IF;
        busy := busy || candidate;
        patience := 1; -- one moment is enough for all of them
        CONTINUE;
      END IF;
      SELECT n.* INTO locked FROM compute_node n WHERE n.id = candidate AND n.status = 'ONLINE';
      chosen := platform.room_on(locked, wanted_shape, wanted_gpus, classes, demanding, wanted_profile);
      IF chosen IS NOT NULL THEN
        RETURN QUERY SELECT locked.id, locked.gpus, locked.region, locked.sku, locked.cpus, locked.memory_mib, chosen;
        RETURN;
      END IF;
    END LOOP;
    EXIT WHEN busy = '{}';
    candidates := busy;
  END LOOP;
END $$;
-- +goose StatementEnd
