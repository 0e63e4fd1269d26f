-- +goose Up
-- What further members of each component are to live in, as its launch said; null for nothing.
ALTER TABLE "instance" ADD COLUMN "capacity_intent" jsonb NULL;

-- What could be placed now within policy, by region and SKU: the largest share of one node's GPUs, and the nodes that are
-- free whole. It says why a request is refused and what would fit, and names no node.
-- +goose StatementBegin
CREATE FUNCTION platform.capacity_now(only_skus text[], not_skus text[], only_regions text[], not_regions text[], classes text[],
    demanding boolean, wanted_profile text)
  RETURNS TABLE (region text, sku text, share bigint, whole bigint)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT n.region, n.sku, max(CASE WHEN h.whole THEN 0 ELSE n.gpus - h.used END)::bigint, count(*) FILTER (WHERE h.held = 0)
  FROM compute_node n
  LEFT JOIN LATERAL (SELECT coalesce(sum(a.gpu_count), 0) AS used, count(*) AS held, coalesce(bool_or(a.shape = 'BAREMETAL'), false) AS whole
    FROM allocation a WHERE a.node_id = n.id AND a.released_at IS NULL) h ON true
  WHERE platform.takes_members(n) AND (only_skus IS NULL OR n.sku = ANY (only_skus)) AND NOT n.sku = ANY (coalesce(not_skus, '{}'))
    AND (only_regions IS NULL OR n.region = ANY (only_regions)) AND NOT n.region = ANY (coalesce(not_regions, '{}'))
    AND platform.offers_walls(n.walls, classes, demanding, wanted_profile)
  GROUP BY 1, 2 HAVING max(CASE WHEN h.whole THEN 0 ELSE n.gpus - h.used END) > 0 OR count(*) FILTER (WHERE h.held = 0) > 0
  ORDER BY 1, 2 LIMIT 50
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.capacity_now(text[], text[], text[], text[], text[], boolean, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.capacity_now(text[], text[], text[], text[], text[], boolean, text) TO app_api, app_operator, app_worker;
-- +goose Down
