-- +goose Up
-- Capacity that is requested for members with volumes is placed on nodes that serve these. See docs/adr/0123.

-- Whether a node offers each of some storages, by name and kind.
CREATE FUNCTION platform.serves_storages(storage jsonb, names text[], kinds text[]) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path = public, pg_temp AS $$
  SELECT coalesce(bool_and(EXISTS (SELECT FROM jsonb_array_elements(CASE jsonb_typeof(storage) WHEN 'array' THEN storage ELSE '[]' END) s
    WHERE s ->> 'name' = w.name AND s ->> 'kind' = w.kind AND s ->> 'reason' = '')), true) FROM unnest(names, kinds) w (name, kind)
$$;

-- As before, of the nodes that offer the storages; of one node alone where only_node names it, and of those that have room
-- for more than the one allocation where least_gpus says so: a local volume's members all live on one node.
-- +goose StatementBegin
CREATE FUNCTION platform.pick_node(wanted_shape text, wanted_gpus bigint, wanted_sku text, wanted_region text,
    only_skus text[], not_skus text[], only_regions text[], not_regions text[], classes text[], demanding boolean, wanted_profile text,
    storages text[], kinds text[], only_node text, least_gpus bigint)
  RETURNS TABLE (node_id text, node_gpus bigint, node_region text, node_sku text, node_cpus bigint, node_memory_mib bigint, held_devices jsonb)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE candidates text[]; busy text[] := '{}'; candidate text; locked compute_node; chosen jsonb; patience bigint := 100;
BEGIN
  candidates := ARRAY(
    SELECT n.id FROM compute_node n
    LEFT JOIN LATERAL (SELECT coalesce(sum(a.gpu_count), 0) AS used, count(*) AS held FROM allocation a
      WHERE a.node_id = n.id AND a.released_at IS NULL) h ON true
    WHERE platform.takes_members(n) AND (wanted_sku = '' OR n.sku = wanted_sku) AND (wanted_region = '' OR n.region = wanted_region)
      AND (only_skus IS NULL OR n.sku = ANY (only_skus)) AND NOT n.sku = ANY (coalesce(not_skus, '{}'))
      AND (only_regions IS NULL OR n.region = ANY (only_regions)) AND NOT n.region = ANY (coalesce(not_regions, '{}'))
      AND platform.offers_walls(n.walls, classes, demanding, wanted_profile)
      AND platform.serves_storages(n.storage, storages, kinds) AND (only_node = '' OR n.id = only_node)
      AND CASE WHEN wanted_shape = 'BAREMETAL' THEN h.held = 0 ELSE n.gpus - h.used >= greatest(wanted_gpus, least_gpus) END
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
      SELECT n.* INTO locked FROM compute_node n WHERE n.id = candidate AND platform.takes_members(n)
        AND platform.serves_storages(n.storage, storages, kinds);
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

-- What an older build asks.
CREATE OR REPLACE FUNCTION platform.pick_node(wanted_shape text, wanted_gpus bigint, wanted_sku text, wanted_region text,
    only_skus text[], not_skus text[], only_regions text[], not_regions text[], classes text[], demanding boolean, wanted_profile text)
  RETURNS TABLE (node_id text, node_gpus bigint, node_region text, node_sku text, node_cpus bigint, node_memory_mib bigint, held_devices jsonb)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  RETURN QUERY SELECT p.* FROM platform.pick_node(wanted_shape, wanted_gpus, wanted_sku, wanted_region, only_skus, not_skus, only_regions,
    not_regions, classes, demanding, wanted_profile, '{}'::text[], '{}'::text[], '', 0) p;
END $$;
-- +goose StatementEnd

-- As before, of the nodes that offer the storages, or of one alone.
CREATE FUNCTION platform.capacity_now(only_skus text[], not_skus text[], only_regions text[], not_regions text[], classes text[],
    demanding boolean, wanted_profile text, storages text[], kinds text[], only_node text)
  RETURNS TABLE (region text, sku text, share bigint, whole bigint)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT n.region, n.sku, max(CASE WHEN h.whole THEN 0 ELSE n.gpus - h.used END)::bigint, count(*) FILTER (WHERE h.held = 0)
  FROM compute_node n
  LEFT JOIN LATERAL (SELECT coalesce(sum(a.gpu_count), 0) AS used, count(*) AS held, coalesce(bool_or(a.shape = 'BAREMETAL'), false) AS whole
    FROM allocation a WHERE a.node_id = n.id AND a.released_at IS NULL) h ON true
  WHERE platform.takes_members(n) AND (only_skus IS NULL OR n.sku = ANY (only_skus)) AND NOT n.sku = ANY (coalesce(not_skus, '{}'))
    AND (only_regions IS NULL OR n.region = ANY (only_regions)) AND NOT n.region = ANY (coalesce(not_regions, '{}'))
    AND platform.offers_walls(n.walls, classes, demanding, wanted_profile)
    AND platform.serves_storages(n.storage, storages, kinds) AND (only_node = '' OR n.id = only_node)
  GROUP BY 1, 2 HAVING max(CASE WHEN h.whole THEN 0 ELSE n.gpus - h.used END) > 0 OR count(*) FILTER (WHERE h.held = 0) > 0
  ORDER BY 1, 2 LIMIT 50
$$;
REVOKE ALL ON FUNCTION platform.serves_storages(jsonb, text[], text[]),
  platform.pick_node(text, bigint, text, text, text[], text[], text[], text[], text[], boolean, text, text[], text[], text, bigint),
  platform.capacity_now(text[], text[], text[], text[], text[], boolean, text, text[], text[], text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.pick_node(text, bigint, text, text, text[], text[], text[], text[], text[], boolean, text, text[], text[], text, bigint),
  platform.capacity_now(text[], text[], text[], text[], text[], boolean, text, text[], text[], text) TO app_api, app_operator, app_worker;
