-- +goose Up
-- Whether versions are ready for everybody, as it was found, and what the platform lacks for apps. Not Ent's: plain statements
-- alone read and write them. Whose an app is decides who sees them. See docs/adr/0106 and docs/adr/0107.
CREATE TABLE onboarding_record (
  id text PRIMARY KEY,
  manifest_id text NOT NULL REFERENCES manifest (id),
  tenant_id text REFERENCES tenant (id),             -- the tenant and the project that publish the app; of the platform's none
  project_id text,
  lacking text[] NOT NULL,                           -- the conditions that had not passed
  checks jsonb NOT NULL,                             -- the seven, with their evidence
  reason text NOT NULL,
  actor_kind text NOT NULL,
  actor_id text NOT NULL,
  actor_name text NOT NULL,
  created_at timestamptz NOT NULL,
  FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id)
);
CREATE INDEX onboarding_record_manifest ON onboarding_record (manifest_id, id);

CREATE TABLE gap (
  id text PRIMARY KEY,
  tenant_id text REFERENCES tenant (id),             -- the tenant and the project that publish the app; of the platform's none
  project_id text,
  app_slug text NOT NULL,
  manifest_id text REFERENCES manifest (id),         -- the version that it was found with
  version text NOT NULL,
  condition text NOT NULL,                           -- the check that failed; empty for one that was raised by hand
  kind text NOT NULL,
  state text NOT NULL,
  title text NOT NULL,
  description text NOT NULL,
  evidence text[] NOT NULL,
  instance_id text,
  raiser_kind text NOT NULL,
  raiser_id text NOT NULL,
  raiser_name text NOT NULL,
  created_at timestamptz NOT NULL,
  decider_kind text NOT NULL DEFAULT '',
  decider_id text NOT NULL DEFAULT '',
  decider_name text NOT NULL DEFAULT '',
  decided_at timestamptz,
  decision text NOT NULL DEFAULT '',                 -- why
  closer_kind text NOT NULL DEFAULT '',
  closer_id text NOT NULL DEFAULT '',
  closer_name text NOT NULL DEFAULT '',
  closed_at timestamptz,
  release text NOT NULL DEFAULT '',                  -- what closed it
  release_manifest_id text REFERENCES manifest (id),
  close_reason text NOT NULL DEFAULT '',
  FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id),
  FOREIGN KEY (instance_id, tenant_id) REFERENCES instance (id, tenant_id)
);
-- A failed check is noted once for each version and condition.
CREATE UNIQUE INDEX gap_of_check ON gap (manifest_id, condition) WHERE condition <> '';
CREATE INDEX gap_app ON gap (app_slug, id);
CREATE INDEX gap_project ON gap (project_id, id);

INSERT INTO lifecycle_transition (machine, from_state, to_state) VALUES
  ('gap', 'OPEN', 'ACCEPTED'),
  ('gap', 'OPEN', 'DEFERRED'),
  ('gap', 'OPEN', 'DECLINED'),
  ('gap', 'DEFERRED', 'ACCEPTED'),
  ('gap', 'DEFERRED', 'DECLINED'),
  ('gap', 'ACCEPTED', 'DEFERRED'),
  ('gap', 'ACCEPTED', 'CLOSED');
CREATE TRIGGER guard_transition BEFORE UPDATE ON gap FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state)
  EXECUTE FUNCTION platform.guard_transition('gap', 'state');

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['onboarding_record', 'gap'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY owner_all ON %I TO app_owner USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY operator_all ON %I TO app_operator USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY api_scope ON %I TO app_api USING (project_id = ANY ((SELECT platform.scope(''app.projects''))::text[]) OR tenant_id = ANY ((SELECT platform.scope(''app.tenants''))::text[]))
      WITH CHECK (project_id = ANY ((SELECT platform.scope(''app.projects''))::text[]) OR tenant_id = ANY ((SELECT platform.scope(''app.tenants''))::text[]))', t);
    EXECUTE format('GRANT SELECT, INSERT ON %I TO app_api, app_operator', t);
  END LOOP;
END $$;
-- +goose StatementEnd
-- The newest records of a version are kept, and a gap is decided and closed by the platform's operators.
GRANT DELETE ON onboarding_record TO app_api, app_operator;
GRANT UPDATE (state, decider_kind, decider_id, decider_name, decided_at, decision, closer_kind, closer_id, closer_name, closed_at, release, release_manifest_id, close_reason) ON gap TO app_operator;
