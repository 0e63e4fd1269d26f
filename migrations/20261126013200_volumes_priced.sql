-- +goose Up
-- What volumes cost an hour, from the same place as what capacity does: the price book now. A storage class without a price
-- is in no sum, and holds nothing below a ceiling or a budget: before there was a price for storage there was none anywhere,
-- and what every project has already would refuse all that is new. See docs/adr/0123.

-- What an hour of volumes of a storage class costs now, in whole millionths and rounded up, at the dearest step of the price.
-- Nothing when no price is set.
CREATE FUNCTION platform.volume_hourly_now(of_tenant text, of_project text, of_currency text, volumes bigint, gib numeric, class text)
  RETURNS TABLE (price_id text, price_currency text, price_hourly numeric) LANGUAGE sql STABLE AS $$
  SELECT v.id, v.currency, (ceil((SELECT max((t ->> 'price')::numeric) FROM jsonb_array_elements(v.terms::jsonb -> 'tiers') t) * 3600 * 1000000
      * CASE WHEN v.terms::jsonb ->> 'measure' = 'TIME' THEN volumes ELSE gib END / (v.terms::jsonb ->> 'per')::numeric) / 1000000)::numeric(38, 6)
  FROM platform.price_now(of_tenant, of_project, of_currency, 'volume_gib_seconds', false, class, '') v $$;

-- As before, and a row for each storage class of the project's volumes that has a price.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.project_usage(of_project text, of_app text, locked boolean)
  RETURNS TABLE (all_instances bigint, app_instances bigint, all_members bigint, held_gpus bigint, held bigint, held_sku text,
    held_currency text, held_hourly text) LANGUAGE plpgsql VOLATILE SET search_path = public, pg_temp AS $$
DECLARE of_tenant text; of_currency text;
BEGIN
  IF locked THEN PERFORM FROM project WHERE id = of_project FOR UPDATE; END IF;
  SELECT p.tenant_id, platform.billing_currency(p.tenant_id) INTO of_tenant, of_currency FROM project p WHERE p.id = of_project;
  RETURN QUERY WITH live AS (SELECT i.id, i.app_slug FROM instance i WHERE i.project_id = of_project AND i.released_at IS NULL),
      rented AS (SELECT a.sku, a.region, a.shape, a.gpu_count, count(*) AS n, sum(a.gpu_count) AS gpus FROM allocation a
        WHERE a.project_id = of_project AND a.released_at IS NULL GROUP BY a.sku, a.region, a.shape, a.gpu_count)
    SELECT (SELECT count(*) FROM live), (SELECT count(*) FROM live WHERE live.app_slug = of_app),
      (SELECT count(*) FROM live JOIN member m ON m.instance_id = live.id AND m.status <> 'REMOVED'),
      coalesce(r.gpus, 0)::bigint, coalesce(r.n, 0), coalesce(r.sku, ''), coalesce(h.price_currency, ''),
      coalesce(h.price_hourly * r.n, 0)::text
    FROM (SELECT) one LEFT JOIN rented r ON true
      LEFT JOIN LATERAL platform.hourly_now(of_tenant, of_project, of_currency, r.shape, r.gpu_count, r.sku, r.region) h ON r.n IS NOT NULL;
  RETURN QUERY WITH live AS (SELECT i.id, i.app_slug FROM instance i WHERE i.project_id = of_project AND i.released_at IS NULL),
      kept AS (SELECT c.name, count(*) AS n, sum(v.size_gib) AS gib FROM volume v JOIN storage_class c ON c.id = v.storage_class_id
        WHERE v.project_id = of_project AND v.deleted_at IS NULL AND v.lost_at IS NULL GROUP BY c.name)
    SELECT (SELECT count(*) FROM live), (SELECT count(*) FROM live WHERE live.app_slug = of_app),
      (SELECT count(*) FROM live JOIN member m ON m.instance_id = live.id AND m.status <> 'REMOVED'),
      0::bigint, k.n, k.name, h.price_currency, h.price_hourly::text
    FROM kept k CROSS JOIN LATERAL platform.volume_hourly_now(of_tenant, of_project, of_currency, k.n, k.gib, k.name) h;
END $$;
-- +goose StatementEnd

-- As before, with the volumes that the budget is for: of a service account those that it made.
CREATE OR REPLACE FUNCTION platform.budget_rate(b budget) RETURNS TABLE (hourly numeric, unpriced bigint)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH rented AS (
    SELECT coalesce(sum(h.price_hourly * k.n), 0) AS hourly, coalesce(sum(k.n) FILTER (WHERE h.price_id IS NULL), 0)::bigint AS unpriced
    FROM (SELECT a.project_id, a.shape, a.gpu_count, a.sku, a.region, count(*) AS n FROM allocation a
        WHERE a.tenant_id = b.tenant_id AND a.released_at IS NULL AND CASE b.scope WHEN 'TENANT' THEN true WHEN 'PROJECT' THEN a.project_id = b.target_id
          WHEN 'INSTANCE' THEN a.instance_id = b.target_id
          ELSE EXISTS (SELECT FROM allocation_requester r WHERE r.allocation_id = a.id AND r.subject_id = b.target_id) END
        GROUP BY 1, 2, 3, 4, 5) k
      LEFT JOIN LATERAL platform.hourly_now(b.tenant_id, k.project_id, b.currency, k.shape, k.gpu_count, k.sku, k.region) h ON true),
  kept AS (
    SELECT coalesce(sum(h.price_hourly), 0) AS hourly
    FROM (SELECT v.project_id, c.name, count(*) AS n, sum(v.size_gib) AS gib FROM volume v JOIN storage_class c ON c.id = v.storage_class_id
        WHERE v.tenant_id = b.tenant_id AND v.deleted_at IS NULL AND v.lost_at IS NULL
          AND CASE b.scope WHEN 'TENANT' THEN true WHEN 'PROJECT' THEN v.project_id = b.target_id WHEN 'INSTANCE' THEN false ELSE v.created_by = b.target_id END
        GROUP BY 1, 2) k
      CROSS JOIN LATERAL platform.volume_hourly_now(b.tenant_id, k.project_id, b.currency, k.n, k.gib, k.name) h)
  SELECT coalesce(sum(rented.hourly + kept.hourly), 0), coalesce(sum(rented.unpriced), 0)::bigint FROM rented CROSS JOIN kept
  WHERE session_user <> 'app_api' OR b.tenant_id = ANY (platform.scope('app.seen_tenants') || platform.scope('app.tenants')) $$;

REVOKE ALL ON FUNCTION platform.volume_hourly_now(text, text, text, bigint, numeric, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.volume_hourly_now(text, text, text, bigint, numeric, text) TO app_api, app_operator, app_worker;
