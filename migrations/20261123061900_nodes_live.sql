-- +goose Up
-- Nodes live and die: an operator keeps new members away, drains, retires and deletes one; its agent's checks report
-- conditions, which keep new members away too.
ALTER TABLE "compute_node"
  ADD COLUMN "cordoned" boolean NOT NULL DEFAULT false, ADD COLUMN "cordon_reason" text NOT NULL DEFAULT '', ADD COLUMN "cordoned_at" timestamptz NULL,
  ADD COLUMN "conditions" jsonb NULL, ADD COLUMN "drain" jsonb NULL, ADD COLUMN "booted_at" timestamptz NULL,
  ADD COLUMN "retired_at" timestamptz NULL, ADD COLUMN "lost" boolean NOT NULL DEFAULT false, ADD COLUMN "deleted_at" timestamptz NULL;
UPDATE compute_node SET retired_at = now() WHERE status = 'RETIRED';
-- The name of a node that was deleted is free again.
DROP INDEX "compute_node_name_key";
CREATE UNIQUE INDEX "compute_node_name_key" ON "compute_node" ("name") WHERE (deleted_at IS NULL);

-- Whether a node takes new members, as far as operators and its own checks say; what is not known to be good enough takes
-- none.
-- +goose StatementBegin
CREATE FUNCTION platform.takes_members(n compute_node) RETURNS boolean LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT n.status = 'ONLINE' AND NOT n.cordoned AND NOT EXISTS (
    SELECT FROM jsonb_array_elements(coalesce(n.conditions, '[]')) c WHERE c ->> 'state' IN ('BAD', 'UNKNOWN'))
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.takes_members(compute_node) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.takes_members(compute_node) TO app_api, app_operator, app_worker;

-- A node for an allocation, its row locked until the commit, with the devices that it would hold. As before, except that
-- a node that takes no new members is passed over, also when that became so while its row was waited for.
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
    WHERE platform.takes_members(n) AND (wanted_sku = '' OR n.sku = wanted_sku) AND (wanted_region = '' OR n.region = wanted_region)
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
      SELECT n.* INTO locked FROM compute_node n WHERE n.id = candidate AND platform.takes_members(n);
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
