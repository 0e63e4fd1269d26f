-- +goose Up
-- What holds for an app in a project: the overlays, widest first, and the entitlement, all as they stand once the
-- locks of their levels are held. An entitlement is written under the lock of its project.
-- +goose StatementBegin
CREATE FUNCTION platform.terms_of(of_tenant text, of_project text, of_app text, at timestamptz)
  RETURNS TABLE (term_id text, term_kind text, term_document jsonb) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN QUERY SELECT overlay_id, overlay_scope, overlay_document FROM platform.policy_of(of_tenant, of_project);
  RETURN QUERY SELECT e.id, 'ENTITLEMENT', jsonb_build_object('maxInstances', e.max_instances, 'maxMembers', e.max_members,
      'maxGpus', e.max_gpus, 'versions', coalesce(e.versions, '[]'::jsonb))
    FROM entitlement e WHERE e.project_id = of_project AND e.app_slug = of_app AND e.revoked_at IS NULL
      AND (e.expires_at IS NULL OR e.expires_at > at);
END $$;
-- +goose StatementEnd

-- What a project has, counted while it is locked if it is asked to be, one row for each SKU that it rents.
-- +goose StatementBegin
CREATE FUNCTION platform.usage_of(of_project text, of_app text, locked boolean)
  RETURNS TABLE (all_instances bigint, app_instances bigint, all_members bigint, held_gpus bigint, held bigint, held_sku text,
    price_currency text, price_micros bigint) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF locked THEN PERFORM FROM project WHERE id = of_project FOR UPDATE; END IF;
  RETURN QUERY WITH live AS (SELECT i.id, i.app_slug FROM instance i WHERE i.project_id = of_project AND i.released_at IS NULL),
      rented AS (SELECT a.sku, count(*) AS n, sum(a.gpu_count) AS gpus FROM allocation a
        WHERE a.project_id = of_project AND a.released_at IS NULL GROUP BY a.sku)
    SELECT (SELECT count(*) FROM live), (SELECT count(*) FROM live WHERE live.app_slug = of_app),
      (SELECT count(*) FROM live JOIN member m ON m.instance_id = live.id AND m.status <> 'REMOVED'),
      coalesce(r.gpus, 0)::bigint, coalesce(r.n, 0), coalesce(r.sku, ''), coalesce(p.currency, ''), coalesce(p.hourly_micros * r.n, 0)::bigint
    FROM (SELECT) one LEFT JOIN rented r ON true LEFT JOIN sku_price p ON p.sku = r.sku;
END $$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION platform.terms_of(text, text, text, timestamptz), platform.usage_of(text, text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.terms_of(text, text, text, timestamptz), platform.usage_of(text, text, boolean) TO app_api, app_operator, app_worker;

-- A node is picked among those whose region and SKU policy lets through: only these, or any where there is no
-- such list, and not those.
DROP FUNCTION platform.pick_node(text, bigint, text, text);

-- +goose StatementBegin
CREATE FUNCTION platform.pick_node(wanted_shape text, wanted_gpus bigint, wanted_sku text, wanted_region text,
    only_skus text[], not_skus text[], only_regions text[], not_regions text[])
  RETURNS TABLE (node_id text, node_gpus bigint, node_region text, node_sku text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE candidate record; used bigint; whole boolean;
BEGIN
  FOR candidate IN
    SELECT n.id, n.gpus, n.region, n.sku FROM compute_node n
    LEFT JOIN LATERAL (SELECT coalesce(sum(a.gpu_count), 0) AS used, count(*) AS held FROM allocation a
      WHERE a.node_id = n.id AND a.released_at IS NULL) h ON true
    WHERE n.status = 'ONLINE' AND (wanted_sku = '' OR n.sku = wanted_sku) AND (wanted_region = '' OR n.region = wanted_region)
      AND (only_skus IS NULL OR n.sku = ANY (only_skus)) AND NOT n.sku = ANY (coalesce(not_skus, '{}'))
      AND (only_regions IS NULL OR n.region = ANY (only_regions)) AND NOT n.region = ANY (coalesce(not_regions, '{}'))
      AND CASE WHEN wanted_shape = 'BAREMETAL' THEN h.held = 0 ELSE n.gpus - h.used >= wanted_gpus END
    ORDER BY CASE WHEN wanted_shape = 'BAREMETAL' THEN 0 ELSE n.gpus - h.used END, n.name
    LIMIT 100
  LOOP
    PERFORM FROM compute_node n WHERE n.id = candidate.id AND n.status = 'ONLINE' FOR UPDATE;
    CONTINUE WHEN NOT FOUND;
    SELECT coalesce(sum(a.gpu_count), 0), bool_or(a.shape = 'BAREMETAL') INTO used, whole
      FROM allocation a WHERE a.node_id = candidate.id AND a.released_at IS NULL;
    IF wanted_shape = 'BAREMETAL' THEN
      CONTINUE WHEN whole IS NOT NULL;
    ELSE
      CONTINUE WHEN coalesce(whole, false) OR candidate.gpus - used < wanted_gpus;
    END IF;
    RETURN QUERY SELECT candidate.id, candidate.gpus::bigint, candidate.region, candidate.sku;
    RETURN;
  END LOOP;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.pick_node(text, bigint, text, text, text[], text[], text[], text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.pick_node(text, bigint, text, text, text[], text[], text[], text[]) TO app_api, app_operator;
