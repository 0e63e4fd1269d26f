-- +goose Up
-- Metered usage. A record is written once and stays as it is. The tables are not Ent's: their keys are of several columns,
-- the records lie in partitions, and only plain statements read and write them.

-- Records of capacity come from the platform, of an app's dimensions from its adapter. A record's id is unique for ever
-- within its source and meter, which is why the partitions go by source and not by time.
CREATE TABLE usage_record (
  source text NOT NULL CHECK (source <> ''),         -- the instance, or the allocation of capacity
  meter text NOT NULL CHECK (meter <> ''),           -- gpu_seconds, node_seconds, or a dimension of the app
  usage_id text NOT NULL CHECK (usage_id <> ''),     -- derived from what is counted, never from the sending
  basis text NOT NULL CHECK (basis IN ('CAPACITY', 'APP', 'SHOWBACK')),
  tenant_id text NOT NULL,
  project_id text NOT NULL,
  app_instance_id text,
  allocation_id text,
  member_id text,
  component_key text,
  operation_id text,
  correlation_id text,
  sku text,
  region text,
  session text NOT NULL,                             -- what a price per started minute is rounded over
  unit text NOT NULL,
  quantity numeric(38,12) NOT NULL,
  from_at timestamptz NOT NULL,
  to_at timestamptz NOT NULL,                        -- not in it
  retracts text,                                     -- usage_id of the record of this source and meter that it takes back
  borne_by text NOT NULL DEFAULT 'TENANT' CHECK (borne_by IN ('TENANT', 'PLATFORM')),
  borne_reason text,
  borne_owner text,                                  -- who can mend what the platform bears
  digest bytea NOT NULL,                             -- SHA-256 of the content's canonical form
  recorded_generation bigint NOT NULL DEFAULT platform.generation(), -- transactions compare within one alone
  recorded_xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  recorded_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (source, meter, usage_id),
  CHECK (from_at <= to_at),
  CHECK (quantity >= 0 OR retracts IS NOT NULL),
  CHECK ((borne_by = 'PLATFORM') = (borne_reason IS NOT NULL)),
  CHECK ((basis = 'CAPACITY') = (source IS NOT DISTINCT FROM allocation_id))
) PARTITION BY HASH (source);
COMMENT ON TABLE usage_record IS 'Metered usage: append only.';
-- +goose StatementBegin
DO $$
BEGIN
  FOR part IN 0..7 LOOP
    EXECUTE format('CREATE TABLE usage_record_%s PARTITION OF usage_record FOR VALUES WITH (MODULUS 8, REMAINDER %s)', part, part);
    EXECUTE format('ALTER TABLE usage_record_%s ENABLE ROW LEVEL SECURITY', part);
    EXECUTE format('ALTER TABLE usage_record_%s FORCE ROW LEVEL SECURITY', part);
    EXECUTE format('CREATE POLICY owner_all ON usage_record_%s TO app_owner USING (true) WITH CHECK (true)', part);
    EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON usage_record_%s FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only()', part);
  END LOOP;
END $$;
-- +goose StatementEnd
CREATE INDEX usage_record_from_at ON usage_record USING brin (from_at);
CREATE INDEX usage_record_project ON usage_record (project_id, from_at);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON usage_record FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();

-- Records that were not taken: what was sent, and why not. Append only, too.
CREATE TABLE usage_quarantine (
  id text PRIMARY KEY,
  tenant_id text NOT NULL,
  project_id text NOT NULL,
  source text NOT NULL,
  meter text NOT NULL,
  usage_id text NOT NULL,
  code text NOT NULL,                                -- of the catalogue of errors
  field text NOT NULL,
  message text NOT NULL,
  record jsonb NOT NULL,                             -- as it was received
  digest bytea NOT NULL,                             -- of what was received
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (source, meter, usage_id, digest)
);
CREATE INDEX usage_quarantine_project ON usage_quarantine (project_id, id);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON usage_quarantine FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();

-- How far each source has been recorded. Its row is the last lock of a transaction: who adds a fact of an allocation holds
-- it, and who records from the facts holds it, so that no fact comes before what has been recorded.
CREATE TABLE usage_source (
  source text PRIMARY KEY,
  basis text NOT NULL CHECK (basis IN ('CAPACITY', 'APP')),
  tenant_id text NOT NULL,
  project_id text NOT NULL,
  recorded_to timestamptz,                           -- capacity: every second before it is recorded
  cursor text NOT NULL DEFAULT '',                   -- an adapter's: what came before it is recorded
  due_at timestamptz NOT NULL DEFAULT now(),
  failures bigint NOT NULL DEFAULT 0,
  last_error text NOT NULL DEFAULT '',
  ended_at timestamptz                               -- nothing comes any more
);
CREATE INDEX usage_source_due ON usage_source (basis, due_at) WHERE ended_at IS NULL;
CREATE INDEX usage_source_project ON usage_source (project_id) WHERE ended_at IS NULL;

-- What has happened to an allocation, in order: its states, who lives in it, what is left behind in it.
CREATE TABLE allocation_fact (
  allocation_id text NOT NULL,
  seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  at timestamptz NOT NULL,
  kind text NOT NULL CHECK (kind IN ('STATE', 'MEMBER_IN', 'MEMBER_OUT', 'ORPHAN', 'ORPHAN_GONE')),
  tenant_id text NOT NULL,
  project_id text NOT NULL,
  status text, node_id text, instance_id text, sku text, region text, -- of a state
  member_id text, component_key text, operation_id text, correlation_id text, -- of a member
  orphan_id text, orphan_kind text, owner text,      -- of an orphan
  PRIMARY KEY (allocation_id, seq)
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON allocation_fact FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();

-- Until when a node's agent has proved that it runs, and when it did not: between two heartbeats that are more than 15 s
-- apart, or that another boot of the machine sent, and before the first.
CREATE TABLE node_proof (
  node_id text PRIMARY KEY REFERENCES compute_node (id),
  proved_at timestamptz NOT NULL,
  boot_id text NOT NULL
) WITH (fillfactor = 70);
CREATE TABLE node_gap (
  node_id text NOT NULL REFERENCES compute_node (id),
  from_at timestamptz NOT NULL,                      -- the last heartbeat before it
  to_at timestamptz NOT NULL,
  rebooted boolean NOT NULL,                         -- the machine did not run all the time
  PRIMARY KEY (node_id, from_at)
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON node_gap FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();

-- +goose StatementBegin
CREATE FUNCTION platform.prove_node() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE was node_proof;
BEGIN
  SELECT * INTO was FROM node_proof p WHERE p.node_id = NEW.id FOR UPDATE;
  IF NOT FOUND THEN
    INSERT INTO node_gap (node_id, from_at, to_at, rebooted) VALUES (NEW.id, '-infinity', NEW.last_seen_at, true);
    INSERT INTO node_proof (node_id, proved_at, boot_id) VALUES (NEW.id, NEW.last_seen_at, NEW.boot_id);
  ELSIF NEW.last_seen_at > was.proved_at THEN
    IF NEW.boot_id <> was.boot_id OR NEW.last_seen_at - was.proved_at > interval '15 seconds' THEN
      INSERT INTO node_gap (node_id, from_at, to_at, rebooted) VALUES (NEW.id, was.proved_at, NEW.last_seen_at, NEW.boot_id <> was.boot_id);
    END IF;
    UPDATE node_proof SET proved_at = NEW.last_seen_at, boot_id = NEW.boot_id WHERE node_id = NEW.id;
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
-- Only a heartbeat sets the boot; what the platform itself writes about a node proves nothing.
CREATE TRIGGER prove_node AFTER UPDATE OF boot_id ON compute_node FOR EACH ROW WHEN (NEW.last_seen_at IS NOT NULL)
  EXECUTE FUNCTION platform.prove_node();

-- Holds an allocation's source until the transaction's end, and makes it due.
-- +goose StatementBegin
CREATE FUNCTION platform.hold_source(allocation text, tenant text, project text) RETURNS timestamptz
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO usage_source AS s (source, basis, tenant_id, project_id) VALUES (allocation, 'CAPACITY', tenant, project)
    ON CONFLICT (source) DO UPDATE SET due_at = least(s.due_at, excluded.due_at);
  RETURN clock_timestamp();
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION platform.note_allocation() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO allocation_fact (allocation_id, at, kind, tenant_id, project_id, status, node_id, instance_id, sku, region)
    SELECT NEW.id, platform.hold_source(NEW.id, NEW.tenant_id, NEW.project_id), 'STATE', NEW.tenant_id, NEW.project_id, NEW.status,
      NEW.node_id, NEW.instance_id, coalesce(nullif(NEW.sku, ''), n.sku, ''), coalesce(nullif(NEW.region, ''), n.region, '')
    FROM (SELECT) one LEFT JOIN compute_node n ON n.id = NEW.node_id;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER note_allocation AFTER INSERT ON allocation FOR EACH ROW EXECUTE FUNCTION platform.note_allocation();
CREATE TRIGGER note_allocation_change AFTER UPDATE OF status, node_id, instance_id ON allocation FOR EACH ROW
  WHEN ((OLD.status, OLD.node_id, OLD.instance_id) IS DISTINCT FROM (NEW.status, NEW.node_id, NEW.instance_id))
  EXECUTE FUNCTION platform.note_allocation();

-- +goose StatementBegin
CREATE FUNCTION platform.note_member() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND OLD.allocation_id IS NOT NULL AND OLD.status <> 'REMOVED'
      AND (NEW.status = 'REMOVED' OR NEW.allocation_id IS DISTINCT FROM OLD.allocation_id) THEN
    INSERT INTO allocation_fact (allocation_id, at, kind, tenant_id, project_id, member_id)
      VALUES (OLD.allocation_id, platform.hold_source(OLD.allocation_id, NEW.tenant_id, NEW.project_id), 'MEMBER_OUT', NEW.tenant_id, NEW.project_id, NEW.id);
  END IF;
  IF NEW.allocation_id IS NOT NULL AND NEW.status <> 'REMOVED'
      AND (TG_OP = 'INSERT' OR NEW.allocation_id IS DISTINCT FROM OLD.allocation_id) THEN
    INSERT INTO allocation_fact (allocation_id, at, kind, tenant_id, project_id, member_id, component_key, operation_id, correlation_id)
      VALUES (NEW.allocation_id, platform.hold_source(NEW.allocation_id, NEW.tenant_id, NEW.project_id), 'MEMBER_IN', NEW.tenant_id, NEW.project_id,
        NEW.id, NEW.component_key, NEW.last_operation_id, nullif(NEW.correlation_id, ''));
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER note_member AFTER INSERT ON member FOR EACH ROW WHEN (NEW.allocation_id IS NOT NULL) EXECUTE FUNCTION platform.note_member();
CREATE TRIGGER note_member_change AFTER UPDATE OF status, allocation_id ON member FOR EACH ROW
  WHEN (OLD.allocation_id IS DISTINCT FROM NEW.allocation_id OR (NEW.status = 'REMOVED' AND OLD.status <> 'REMOVED'))
  EXECUTE FUNCTION platform.note_member();

-- +goose StatementBegin
CREATE FUNCTION platform.note_orphan() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO allocation_fact (allocation_id, at, kind, tenant_id, project_id, orphan_id, orphan_kind, owner)
    VALUES (NEW.allocation_id, platform.hold_source(NEW.allocation_id, NEW.tenant_id, NEW.project_id),
      CASE WHEN NEW.resolved_at IS NULL THEN 'ORPHAN' ELSE 'ORPHAN_GONE' END, NEW.tenant_id, NEW.project_id, NEW.id, NEW.kind, NEW.owner);
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER note_orphan AFTER INSERT ON orphan FOR EACH ROW WHEN (NEW.allocation_id IS NOT NULL AND NEW.resolved_at IS NULL)
  EXECUTE FUNCTION platform.note_orphan();
CREATE TRIGGER note_orphan_gone AFTER UPDATE OF resolved_at ON orphan FOR EACH ROW
  WHEN (NEW.allocation_id IS NOT NULL AND OLD.resolved_at IS NULL AND NEW.resolved_at IS NOT NULL) EXECUTE FUNCTION platform.note_orphan();
REVOKE ALL ON FUNCTION platform.prove_node(), platform.hold_source(text, text, text), platform.note_allocation(), platform.note_member(),
  platform.note_orphan() FROM PUBLIC;

-- Capacity that is rented already is metered from now on.
INSERT INTO usage_source (source, basis, tenant_id, project_id) SELECT a.id, 'CAPACITY', a.tenant_id, a.project_id FROM allocation a WHERE a.released_at IS NULL;
INSERT INTO allocation_fact (allocation_id, at, kind, tenant_id, project_id, status, node_id, instance_id, sku, region)
  SELECT a.id, now(), 'STATE', a.tenant_id, a.project_id, a.status, a.node_id, a.instance_id, coalesce(nullif(a.sku, ''), n.sku, ''), coalesce(nullif(a.region, ''), n.region, '')
  FROM allocation a LEFT JOIN compute_node n ON n.id = a.node_id WHERE a.released_at IS NULL;
INSERT INTO allocation_fact (allocation_id, at, kind, tenant_id, project_id, member_id, component_key, operation_id, correlation_id)
  SELECT m.allocation_id, now(), 'MEMBER_IN', m.tenant_id, m.project_id, m.id, m.component_key, m.last_operation_id, nullif(m.correlation_id, '')
  FROM member m JOIN allocation a ON a.id = m.allocation_id WHERE a.released_at IS NULL AND m.status <> 'REMOVED';
INSERT INTO allocation_fact (allocation_id, at, kind, tenant_id, project_id, orphan_id, orphan_kind, owner)
  SELECT o.allocation_id, now(), 'ORPHAN', o.tenant_id, o.project_id, o.id, o.kind, o.owner
  FROM orphan o JOIN allocation a ON a.id = o.allocation_id WHERE a.released_at IS NULL AND o.resolved_at IS NULL;

-- Who sees and writes what. No role of the application may change or delete a record.
-- +goose StatementBegin
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['usage_record', 'usage_quarantine', 'usage_source', 'allocation_fact', 'node_proof', 'node_gap'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY owner_all ON %I TO app_owner USING (true) WITH CHECK (true)', name);
    EXECUTE format('CREATE POLICY operator_read ON %I FOR SELECT TO app_operator USING (true)', name);
    EXECUTE format('CREATE POLICY worker_all ON %I TO app_worker USING (true) WITH CHECK (true)', name);
    EXECUTE format('GRANT SELECT ON %I TO app_operator, app_worker', name);
  END LOOP;
  FOREACH name IN ARRAY ARRAY['usage_record', 'usage_quarantine', 'usage_source', 'allocation_fact'] LOOP
    EXECUTE format($p$CREATE POLICY api_scope ON %1$I TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[])
      OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK ((project_id = ANY ((SELECT platform.scope('app.projects'))::text[])
      OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) AND EXISTS (SELECT FROM project p WHERE p.id = %1$I.project_id AND p.tenant_id = %1$I.tenant_id))$p$, name);
    EXECUTE format('GRANT SELECT ON %I TO app_api', name);
  END LOOP;
  FOREACH name IN ARRAY ARRAY['usage_record', 'usage_quarantine'] LOOP
    EXECUTE format('CREATE POLICY operator_write ON %I FOR INSERT TO app_operator WITH CHECK (true)', name);
    EXECUTE format('GRANT INSERT ON %I TO app_api, app_operator, app_worker', name);
  END LOOP;
END $$;
-- +goose StatementEnd
GRANT INSERT, UPDATE ON usage_source TO app_worker;
