-- +goose Up
-- What holds of the price book now, in one place: plans, policy, orphans and budgets ask the same functions. They run with
-- the caller's rights, so that nobody is shown a price of others.

-- The currency that a tenant's usage is rated in: that of its present period, before its first one that of its account; none
-- before it has either.
CREATE FUNCTION platform.billing_currency(of_tenant text) RETURNS text LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT coalesce((SELECT p.currency FROM billing_period p WHERE p.tenant_id = of_tenant AND p.starts_at <= now() AND p.ends_at > now()),
    (SELECT a.currency FROM billing_account a WHERE a.tenant_id = of_tenant)) $$;

-- The price of a meter now; nothing when it has none. The order is that of domain/rating: the narrower scope, then the very
-- meter, SKU and region. Without a currency any will do, for the tenant is not billed in one yet.
CREATE FUNCTION platform.price_now(of_tenant text, of_project text, of_currency text, of_meter text, of_capacity boolean, of_sku text, of_region text)
  RETURNS SETOF price_version LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT v.* FROM price_version v
  WHERE v.superseded_xid IS NULL AND v.valid_from <= now() AND (v.valid_to IS NULL OR v.valid_to > now())
    AND (of_currency IS NULL OR v.currency = of_currency) AND (v.meter = of_meter OR of_capacity AND v.meter = 'capacity')
    AND v.sku IN ('', of_sku) AND v.region IN ('', of_region)
    AND (v.scope = 'PLATFORM' OR v.scope = 'TENANT' AND v.tenant_id = of_tenant OR v.scope = 'PROJECT' AND v.project_id = of_project)
  ORDER BY array_position(ARRAY['PROJECT', 'TENANT', 'PLATFORM'], v.scope), v.meter = 'capacity', v.sku = '', v.region = '', v.valid_from, v.id
  LIMIT 1 $$;

-- What an hour of an allocation costs now, in whole millionths and rounded up: the dearest step of the price counts, since
-- which one applies depends on what else is used. Nothing when no price is set.
CREATE FUNCTION platform.hourly_now(of_tenant text, of_project text, of_currency text, of_shape text, of_gpus bigint, of_sku text, of_region text)
  RETURNS TABLE (price_id text, price_currency text, price_hourly numeric) LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT v.id, v.currency, (ceil((SELECT max((t ->> 'price')::numeric) FROM jsonb_array_elements(v.terms::jsonb -> 'tiers') t) * 3600 * 1000000
      * CASE WHEN of_shape = 'BAREMETAL' OR v.terms::jsonb ->> 'measure' = 'TIME' THEN 1 ELSE greatest(of_gpus, 1) END
      / (v.terms::jsonb ->> 'per')::numeric) / 1000000)::numeric(38, 6)
  FROM platform.price_now(of_tenant, of_project, of_currency, CASE WHEN of_shape = 'BAREMETAL' THEN 'node_seconds' ELSE 'gpu_seconds' END, true,
    of_sku, of_region) v $$;

-- What a project has, counted while it is locked if it is asked to be, one row for each kind of capacity that it rents. It
-- takes the place of usage_of, which older builds ask and which knows list prices alone.
-- +goose StatementBegin
CREATE FUNCTION platform.project_usage(of_project text, of_app text, locked boolean)
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
END $$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION platform.billing_currency(text), platform.price_now(text, text, text, text, boolean, text, text),
  platform.hourly_now(text, text, text, text, bigint, text, text), platform.project_usage(text, text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.billing_currency(text), platform.price_now(text, text, text, text, boolean, text, text),
  platform.hourly_now(text, text, text, text, bigint, text, text), platform.project_usage(text, text, boolean) TO app_api, app_operator, app_worker;
