-- +goose Up
-- Prices and books. The tables are not Ent's: amounts are numeric, validities exclude each other, and only plain statements
-- read and write them. See docs/adr/0063 and 0064.

-- A range of texts, so that validities of one shelf exclude each other without an extension that a server may lack.
CREATE TYPE platform.text_range AS RANGE (SUBTYPE = text, COLLATION = "C");

-- The price book. A version is written once; that others took its place is all that is ever noted on it, once.
CREATE TABLE price_version (
  id text PRIMARY KEY,
  origin text NOT NULL,                              -- the version whose terms it carries on; of a first one itself
  meter text NOT NULL,                               -- or "capacity", for whatever meter of it
  sku text NOT NULL,                                 -- empty for any
  region text NOT NULL,                              -- empty for any
  currency text NOT NULL,
  scope text NOT NULL,                               -- PLATFORM, TENANT or PROJECT
  tenant_id text,
  project_id text,
  shelf text NOT NULL GENERATED ALWAYS AS (meter || '|' || sku || '|' || region || '|' || currency || '|' || coalesce(project_id, tenant_id, '')) STORED,
  valid_from timestamptz NOT NULL,
  valid_to timestamptz,                              -- not in it; missing for ever
  version bigint NOT NULL,                           -- counts the versions of a shelf
  terms text NOT NULL,                               -- JSON, in its one form
  hash text NOT NULL,                                -- SHA-256 of what the version says, in hex
  reason text NOT NULL,
  created_by text NOT NULL,
  recorded_generation bigint NOT NULL DEFAULT platform.generation(),
  recorded_xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  recorded_at timestamptz NOT NULL DEFAULT now(),
  superseded_generation bigint,
  superseded_xid xid8,                               -- the transaction that wrote what took its place
  superseded_at timestamptz,
  CHECK (valid_to IS NULL OR valid_from < valid_to),
  CONSTRAINT price_version_no_overlap EXCLUDE USING gist (platform.text_range(shelf, shelf, '[]') WITH &&, tstzrange(valid_from, valid_to) WITH &&)
    WHERE (superseded_xid IS NULL)
);
CREATE UNIQUE INDEX price_version_order ON price_version (shelf, version, id);
CREATE INDEX price_version_tenant ON price_version (tenant_id, id);

-- The shelf is left out: before the row is written it is not made yet.
-- +goose StatementBegin
CREATE FUNCTION platform.keep_price() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF OLD.superseded_xid IS NOT NULL
      OR to_jsonb(OLD) - '{superseded_generation,superseded_xid,superseded_at,shelf}'::text[] <> to_jsonb(NEW) - '{superseded_generation,superseded_xid,superseded_at,shelf}'::text[] THEN
    RAISE EXCEPTION 'a price is written once' USING ERRCODE = 'insufficient_privilege', CONSTRAINT = 'append_only';
  END IF;
  NEW.superseded_generation := platform.generation();
  NEW.superseded_xid := pg_current_xact_id();
  NEW.superseded_at := now();
  RETURN NEW;
END $$;
-- +goose StatementEnd
-- The hash is of what the version says, and made here alone.
-- +goose StatementBegin
CREATE FUNCTION platform.hash_price() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.hash := encode(sha256(convert_to(concat_ws('|', NEW.id, NEW.origin, NEW.meter, NEW.sku, NEW.region, NEW.currency, NEW.scope, coalesce(NEW.tenant_id, ''),
    coalesce(NEW.project_id, ''), extract(epoch FROM NEW.valid_from), coalesce(extract(epoch FROM NEW.valid_to)::text, ''), NEW.version, NEW.terms), 'UTF8')), 'hex');
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER hash_price BEFORE INSERT ON price_version FOR EACH ROW EXECUTE FUNCTION platform.hash_price();
CREATE TRIGGER keep_price BEFORE UPDATE ON price_version FOR EACH ROW EXECUTE FUNCTION platform.keep_price();
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON price_version FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();

-- In which currency a tenant is billed, and how long a period waits for late usage.
CREATE TABLE billing_account (
  tenant_id text PRIMARY KEY REFERENCES tenant (id),
  currency text NOT NULL,
  grace_seconds bigint NOT NULL,
  updated_at timestamptz NOT NULL
);

-- A month of a tenant. Currency and grace are stored with it: what is set later counts for later ones.
CREATE TABLE billing_period (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES tenant (id),
  currency text NOT NULL,
  grace_seconds bigint NOT NULL,
  starts_at timestamptz NOT NULL,
  ends_at timestamptz NOT NULL,                      -- not in it
  status text NOT NULL,                              -- OPEN, CLOSING or CLOSED
  closed_at timestamptz,
  reopened_at timestamptz,
  CHECK (starts_at <= ends_at),
  UNIQUE (tenant_id, starts_at),
  UNIQUE (id, tenant_id)
);
CREATE INDEX billing_period_open ON billing_period (ends_at) WHERE closed_at IS NULL;
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON billing_period FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();

-- A run says from what it was made, so that anyone may make it again.
CREATE TABLE billing_run (
  id text PRIMARY KEY,
  tenant_id text NOT NULL,
  period_id text NOT NULL,
  seq bigint NOT NULL,                               -- counts the runs of a period
  statement_id text NOT NULL,                        -- the period on whose statement it shows
  event_to timestamptz NOT NULL,                     -- usage counts up to here
  generation bigint NOT NULL,                        -- records, and prices, that were committed before the watermark count
  watermark xid8 NOT NULL,
  engine bigint NOT NULL,
  price_hash text NOT NULL,
  input_digest text NOT NULL,
  output_digest text NOT NULL,
  lines bigint NOT NULL,
  unpriced bigint NOT NULL,                          -- lines without a price
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (period_id, seq),
  FOREIGN KEY (period_id, tenant_id) REFERENCES billing_period (id, tenant_id),
  FOREIGN KEY (statement_id, tenant_id) REFERENCES billing_period (id, tenant_id),
  UNIQUE (id, tenant_id)
);
CREATE INDEX billing_run_tenant ON billing_run (tenant_id, id);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON billing_run FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();

-- What a run made of a line, where that differs from what the run before it did.
CREATE TABLE billing_line (
  run_id text NOT NULL,
  tenant_id text NOT NULL,
  project_id text NOT NULL,
  period_id text NOT NULL,
  seq bigint NOT NULL,
  key text NOT NULL,
  line text NOT NULL,                                -- JSON, in its one form
  PRIMARY KEY (period_id, key, seq),
  FOREIGN KEY (run_id, tenant_id) REFERENCES billing_run (id, tenant_id)
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON billing_line FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();

CREATE TABLE credit_grant (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES tenant (id),
  currency text NOT NULL,
  amount numeric(38,12) NOT NULL CHECK (amount > 0),
  priority bigint NOT NULL,                          -- the lower is used first
  expires_at timestamptz,
  reason text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX credit_grant_tenant ON credit_grant (tenant_id, id);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON credit_grant FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();

-- The ledger. A transaction of it is written whole by one transaction of the database, which its entries carry: no entry
-- can be added later. What is debited is positive.
CREATE TABLE ledger_tx (
  id text PRIMARY KEY,                               -- UUID v5 of run and line
  tenant_id text NOT NULL,
  project_id text,
  kind text NOT NULL,                                -- USAGE, CORRECTION, CLOSE, REOPEN, CREDIT_GRANTED, CREDIT_USED or CREDIT_EXPIRED
  run_id text,
  period_id text NOT NULL,                           -- on whose statement it shows
  of_period_id text NOT NULL,                        -- in which it takes effect
  line_key text,
  price_id text,
  meter text, unit text, sku text, region text, borne text,
  quantity numeric(38,12),
  billed numeric(38,12),
  amount numeric(38,12) NOT NULL,                    -- what the statement's line changes by, in minor units' places
  currency text NOT NULL,
  effective_at timestamptz NOT NULL,
  booked_at timestamptz NOT NULL DEFAULT now(),
  booked_xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  FOREIGN KEY (run_id, tenant_id) REFERENCES billing_run (id, tenant_id),
  FOREIGN KEY (period_id, tenant_id) REFERENCES billing_period (id, tenant_id),
  FOREIGN KEY (of_period_id, tenant_id) REFERENCES billing_period (id, tenant_id),
  UNIQUE (id, tenant_id, booked_xid)
);
CREATE INDEX ledger_tx_statement ON ledger_tx (period_id, project_id, line_key);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_tx FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();

CREATE TABLE ledger_entry (
  tx_id text NOT NULL,
  n bigint NOT NULL,
  tenant_id text NOT NULL,
  project_id text,
  account text NOT NULL,                             -- RECEIVABLE, ACCRUED, REVENUE, CREDIT, PROMOTION, BREAKAGE, PLATFORM_BORNE or ROUNDING
  dimension text NOT NULL DEFAULT '',                -- the meter of revenue, the reason of what the platform bears
  amount numeric(38,12) NOT NULL,
  currency text NOT NULL,
  grant_id text,
  instance_id text, allocation_id text, member_id text, component_key text, operation_id text, -- whose usage it is
  booked_xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (tx_id, n),
  FOREIGN KEY (tx_id, tenant_id, booked_xid) REFERENCES ledger_tx (id, tenant_id, booked_xid)
);
CREATE INDEX ledger_entry_account ON ledger_entry (tenant_id, account);
CREATE INDEX ledger_entry_grant ON ledger_entry (grant_id) WHERE grant_id IS NOT NULL;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entry FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();

-- Every transaction of the ledger has entries, and they sum to zero in each currency.
-- +goose StatementBegin
CREATE FUNCTION platform.balance_ledger() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM ledger_entry e WHERE e.tx_id = NEW.id)
      OR EXISTS (SELECT FROM ledger_entry e WHERE e.tx_id = NEW.id GROUP BY e.currency HAVING sum(e.amount) <> 0) THEN
    RAISE EXCEPTION 'ledger transaction % does not sum to zero', NEW.id USING ERRCODE = 'check_violation', CONSTRAINT = 'ledger_balanced';
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.balance_ledger() FROM PUBLIC;
CREATE CONSTRAINT TRIGGER ledger_balanced AFTER INSERT ON ledger_tx DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  EXECUTE FUNCTION platform.balance_ledger();

-- Whether a transaction was committed before a watermark of a generation: see docs/adr/0059.
CREATE FUNCTION platform.before_mark(row_generation bigint, row_xid xid8, of_generation bigint, watermark xid8) RETURNS boolean LANGUAGE sql IMMUTABLE
  RETURN row_generation < of_generation OR row_generation = of_generation AND row_xid < watermark;

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['price_version', 'billing_account', 'billing_period', 'billing_run', 'billing_line', 'credit_grant', 'ledger_tx', 'ledger_entry'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY owner_all ON %I TO app_owner USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY operator_all ON %I TO app_operator USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY worker_all ON %I TO app_worker USING (true) WITH CHECK (true)', t);
    EXECUTE format('GRANT SELECT ON %I TO app_api', t);
    EXECUTE format('GRANT SELECT, INSERT ON %I TO app_operator, app_worker', t);
  END LOOP;
END $$;
-- +goose StatementEnd
GRANT UPDATE (superseded_xid) ON price_version TO app_operator;
GRANT UPDATE (currency, grace_seconds, updated_at) ON billing_account TO app_operator;
GRANT UPDATE (updated_at) ON billing_account TO app_worker; -- which locks it
GRANT UPDATE (status, closed_at, reopened_at) ON billing_period TO app_operator, app_worker;
CREATE POLICY api_read ON price_version FOR SELECT TO app_api USING (tenant_id IS NULL
  OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR project_id = ANY ((SELECT platform.scope('app.projects'))::text[])
  OR project_id IS NULL AND tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]));
CREATE POLICY api_read ON billing_account FOR SELECT TO app_api USING (tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]));
CREATE POLICY api_read ON billing_period FOR SELECT TO app_api USING (tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]));
CREATE POLICY api_read ON billing_run FOR SELECT TO app_api USING (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY api_read ON credit_grant FOR SELECT TO app_api USING (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY api_read ON billing_line FOR SELECT TO app_api USING (
  project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY api_read ON ledger_tx FOR SELECT TO app_api USING (
  project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY api_read ON ledger_entry FOR SELECT TO app_api USING (
  project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));

-- List prices that were set before the book was opened are in it from their day on.
INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version, terms, hash, reason, created_by)
  SELECT 'prc_' || substr(p.id, 5), 'prc_' || substr(p.id, 5), 'capacity', p.sku, '', p.currency, 'PLATFORM', p.updated_at, 1,
    '{"measure":"TIME","per":"3600","tiers":[{"price":"' || trim_scale(p.hourly_micros::numeric / 1000000)::text || '"}],"minimum":"0","roundUpTo":"0"}',
    '', 'the list price of before', ''
  FROM sku_price p;

-- Usage that came since a period's last run is found by when it was written, and a period's by its end.
CREATE INDEX usage_record_to_at ON usage_record USING brin (to_at);
