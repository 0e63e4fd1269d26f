-- +goose Up
-- A plan reads its prices in one statement whose plan is kept. A function in SQL that sets something is planned again by
-- every statement that calls it, and what it calls too: that took longer than finding the price.

-- Kept in each session. It stays a function of its own: the currency is not a matter of prices alone.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.billing_currency(of_tenant text) RETURNS text LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
BEGIN
  RETURN coalesce((SELECT p.currency FROM billing_period p WHERE p.tenant_id = of_tenant AND p.starts_at <= now() AND p.ends_at > now()),
    (SELECT a.currency FROM billing_account a WHERE a.tenant_id = of_tenant));
END $$;
-- +goose StatementEnd

-- These two set nothing, so that they become part of the statement that calls them; names are in full instead.
CREATE OR REPLACE FUNCTION platform.price_now(of_tenant text, of_project text, of_currency text, of_meter text, of_capacity boolean, of_sku text, of_region text)
  RETURNS SETOF price_version LANGUAGE sql STABLE AS $$
  SELECT v.* FROM public.price_version v
  WHERE v.superseded_xid IS NULL AND v.valid_from <= now() AND (v.valid_to IS NULL OR v.valid_to > now())
    AND (of_currency IS NULL OR v.currency = of_currency) AND (v.meter = of_meter OR of_capacity AND v.meter = 'capacity')
    AND v.sku IN ('', of_sku) AND v.region IN ('', of_region)
    AND (v.scope = 'PLATFORM' OR v.scope = 'TENANT' AND v.tenant_id = of_tenant OR v.scope = 'PROJECT' AND v.project_id = of_project)
  ORDER BY array_position(ARRAY['PROJECT', 'TENANT', 'PLATFORM'], v.scope), v.meter = 'capacity', v.sku = '', v.region = '', v.valid_from, v.id
  LIMIT 1 $$;

CREATE OR REPLACE FUNCTION platform.hourly_now(of_tenant text, of_project text, of_currency text, of_shape text, of_gpus bigint, of_sku text, of_region text)
  RETURNS TABLE (price_id text, price_currency text, price_hourly numeric) LANGUAGE sql STABLE AS $$
  SELECT v.id, v.currency, (ceil((SELECT max((t ->> 'price')::numeric) FROM jsonb_array_elements(v.terms::jsonb -> 'tiers') t) * 3600 * 1000000
      * CASE WHEN of_shape = 'BAREMETAL' OR v.terms::jsonb ->> 'measure' = 'TIME' THEN 1 ELSE greatest(of_gpus, 1) END
      / (v.terms::jsonb ->> 'per')::numeric) / 1000000)::numeric(38, 6)
  FROM platform.price_now(of_tenant, of_project, of_currency, CASE WHEN of_shape = 'BAREMETAL' THEN 'node_seconds' ELSE 'gpu_seconds' END, true,
    of_sku, of_region) v $$;

-- What an hour of each kind of capacity costs, and what each dimension of an app does, in the tenant's currency: by the
-- place in what was asked for, the amount of an hour or the terms of a dimension. What has no price is missing.
-- +goose StatementBegin
CREATE FUNCTION platform.prices_now(of_tenant text, of_project text, shapes text[], gpus bigint[], skus text[], regions text[], meters text[])
  RETURNS TABLE (n bigint, price_id text, price_currency text, price_hourly numeric, price_terms text)
  LANGUAGE plpgsql STABLE SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE of_currency text := platform.billing_currency(of_tenant);
BEGIN
  RETURN QUERY SELECT w.n, h.price_id, h.price_currency, h.price_hourly, NULL
    FROM unnest(shapes, gpus, skus, regions) WITH ORDINALITY w (shape, gpus, sku, region, n)
    CROSS JOIN LATERAL platform.hourly_now(of_tenant, of_project, of_currency, w.shape, w.gpus, w.sku, w.region) h;
  RETURN QUERY SELECT w.n, v.id, v.currency, NULL::numeric, v.terms FROM unnest(meters) WITH ORDINALITY w (meter, n)
    CROSS JOIN LATERAL platform.price_now(of_tenant, of_project, of_currency, w.meter, false, '', '') v;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.prices_now(text, text, text[], bigint[], text[], text[], text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.prices_now(text, text, text[], bigint[], text[], text[], text[]) TO app_api, app_operator, app_worker;
