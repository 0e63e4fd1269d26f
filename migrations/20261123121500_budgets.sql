-- +goose Up
-- Budgets. Not Ent's, as the books are not: amounts are numeric, and plain statements alone read and write them. See docs/adr/0075.

-- Who requested an allocation: its cost counts against the budget of a service account, and is shown by person.
CREATE TABLE allocation_requester (
  allocation_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  project_id text NOT NULL,
  subject_id text NOT NULL
);
CREATE INDEX allocation_requester_subject ON allocation_requester (subject_id);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON allocation_requester FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();

-- +goose StatementBegin
CREATE FUNCTION platform.note_requester() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE subject text := (platform.scope('app.subject'))[1];
BEGIN
  IF subject IS NOT NULL THEN -- the platform's own transactions have none
    INSERT INTO allocation_requester (allocation_id, tenant_id, project_id, subject_id) VALUES (NEW.id, NEW.tenant_id, NEW.project_id, subject);
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.note_requester() FROM PUBLIC;
CREATE TRIGGER note_requester AFTER INSERT ON allocation FOR EACH ROW EXECUTE FUNCTION platform.note_requester();

CREATE TABLE budget (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES tenant (id),
  project_id text,                                   -- of one for all of the tenant none
  scope text NOT NULL CHECK (scope IN ('TENANT', 'PROJECT', 'SERVICE_ACCOUNT', 'INSTANCE')),
  target_id text NOT NULL,                           -- the tenant, project, service account or instance
  currency text NOT NULL,
  amount numeric(38,12) NOT NULL CHECK (amount > 0),
  span text NOT NULL CHECK (span IN ('MONTH', 'TOTAL')),
  horizon_seconds bigint NOT NULL,                   -- for how long what is rented is held of the budget
  thresholds bigint[] NOT NULL,                      -- in percent
  at_limit text NOT NULL CHECK (at_limit IN ('TELL', 'REFUSE', 'DRAIN', 'DECOMMISSION')),
  reason text NOT NULL,
  created_by text NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  removed_at timestamptz,
  -- What the billing role keeps: the books' sum, and what was told of it.
  spent numeric(38,12) NOT NULL DEFAULT 0,
  spent_at timestamptz,
  period_start timestamptz,                          -- of the month that spent and reached are of
  reached bigint NOT NULL DEFAULT 0,                 -- the highest threshold that was told
  limit_at timestamptz,                              -- when the amount was reached
  trouble text NOT NULL DEFAULT '',                  -- why the outcome at the limit could not be carried out
  FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id)
);
CREATE UNIQUE INDEX budget_live ON budget (target_id) WHERE removed_at IS NULL;
CREATE INDEX budget_tenant ON budget (tenant_id, id) WHERE removed_at IS NULL;

-- What an hour of the capacity that a budget is for costs, and how many allocations have no price in its currency.
CREATE FUNCTION platform.budget_rate(b budget) RETURNS TABLE (hourly numeric, unpriced bigint)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT coalesce(sum(h.price_hourly * k.n), 0), coalesce(sum(k.n) FILTER (WHERE h.price_id IS NULL), 0)::bigint
  FROM (SELECT a.project_id, a.shape, a.gpu_count, a.sku, a.region, count(*) AS n FROM allocation a
      WHERE a.tenant_id = b.tenant_id AND a.released_at IS NULL AND CASE b.scope WHEN 'TENANT' THEN true WHEN 'PROJECT' THEN a.project_id = b.target_id
        WHEN 'INSTANCE' THEN a.instance_id = b.target_id
        ELSE EXISTS (SELECT FROM allocation_requester r WHERE r.allocation_id = a.id AND r.subject_id = b.target_id) END
      GROUP BY 1, 2, 3, 4, 5) k
    LEFT JOIN LATERAL platform.hourly_now(b.tenant_id, k.project_id, b.currency, k.shape, k.gpu_count, k.sku, k.region) h ON true
  WHERE session_user <> 'app_api' OR b.tenant_id = ANY (platform.scope('app.seen_tenants') || platform.scope('app.tenants')) $$;

-- What a budget holds for what is rented: its price for the horizon, in a month no longer than that lasts.
CREATE FUNCTION platform.budget_held(b budget, hourly numeric) RETURNS numeric LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT ceil(hourly * 1000000 * CASE b.span WHEN 'TOTAL' THEN b.horizon_seconds
    ELSE least(b.horizon_seconds, extract(epoch FROM date_trunc('month', now() AT TIME ZONE 'UTC') + interval '1 month' - now() AT TIME ZONE 'UTC')) END / 3600) / 1000000 $$;

-- Whoever admits something, and whoever sets the budget, take turns until their transactions end.
CREATE FUNCTION platform.lock_budget(target text) RETURNS void LANGUAGE sql VOLATILE SET search_path = public, pg_temp AS $$
  SELECT pg_advisory_xact_lock(hashtextextended('budget ' || target, 0)) $$;

-- The budgets that something new counts against, other than those that only tell, as they are once they are locked. More is
-- what an hour of it costs for an instance that it is not bound to yet.
-- +goose StatementBegin
CREATE FUNCTION platform.budgets_over(of_tenant text, of_project text, of_instance text, of_account text, more numeric, locked boolean)
  RETURNS TABLE (budget_id text, budget_scope text, budget_currency text, budget_amount text, budget_spent text, budget_held text, budget_unpriced bigint)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF session_user = 'app_api' AND NOT coalesce(of_tenant = ANY (platform.scope('app.seen_tenants') || platform.scope('app.tenants')), false) THEN RETURN; END IF;
  IF locked THEN -- not the row: its instance is locked here already, and the billing role locks the row before it tells an instance
    PERFORM platform.lock_budget(b.target_id) FROM (SELECT b.target_id FROM budget b WHERE b.tenant_id = of_tenant AND b.removed_at IS NULL
      AND b.target_id IN (of_tenant, of_project, of_instance, of_account) ORDER BY b.target_id) b;
  END IF;
  RETURN QUERY SELECT b.id, b.scope, b.currency, trim_scale(b.amount)::text, trim_scale(s.spent)::text,
      trim_scale(platform.budget_held(b, r.hourly + CASE WHEN b.scope = 'INSTANCE' THEN more ELSE 0 END))::text, r.unpriced
    FROM budget b CROSS JOIN LATERAL platform.budget_rate(b) r
    CROSS JOIN LATERAL (SELECT CASE WHEN b.span = 'MONTH' AND b.period_start < date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' THEN 0 ELSE b.spent END AS spent) s
    WHERE b.tenant_id = of_tenant AND b.removed_at IS NULL AND b.at_limit <> 'TELL' AND b.target_id IN (of_tenant, of_project, of_instance, of_account)
    ORDER BY b.id;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['budget', 'allocation_requester'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY owner_all ON %I TO app_owner USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY operator_all ON %I TO app_operator USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY worker_all ON %I TO app_worker USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY api_scope ON %I TO app_api USING (project_id = ANY ((SELECT platform.scope(''app.projects''))::text[]) OR tenant_id = ANY ((SELECT platform.scope(''app.tenants''))::text[]))
      WITH CHECK (project_id = ANY ((SELECT platform.scope(''app.projects''))::text[]) OR tenant_id = ANY ((SELECT platform.scope(''app.tenants''))::text[]))', t);
    EXECUTE format('GRANT SELECT ON %I TO app_api, app_operator, app_worker', t);
  END LOOP;
END $$;
-- +goose StatementEnd
GRANT INSERT ON budget TO app_api, app_operator;
GRANT UPDATE ON budget TO app_api, app_operator, app_worker;
REVOKE ALL ON FUNCTION platform.budget_rate(budget), platform.budget_held(budget, numeric),
  platform.lock_budget(text), platform.budgets_over(text, text, text, text, numeric, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.budget_rate(budget), platform.budget_held(budget, numeric),
  platform.lock_budget(text), platform.budgets_over(text, text, text, text, numeric, boolean) TO app_api, app_operator, app_worker;
