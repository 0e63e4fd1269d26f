-- +goose Up
-- A publisher tries an app and an adapter of its own before the platform's staff opens them: its tenant alone sees them.
ALTER TABLE "app" ADD COLUMN "sandbox" boolean NOT NULL DEFAULT false;
ALTER TABLE "app" ADD CHECK (NOT sandbox OR publisher_project_id IS NOT NULL);
ALTER TABLE "manifest" ADD COLUMN "sandbox" boolean NOT NULL DEFAULT false;
ALTER TABLE "adapter" ADD COLUMN "tenant_id" text NULL, ADD COLUMN "project_id" text NULL;
ALTER TABLE "adapter" ADD CHECK ((tenant_id IS NULL) = (project_id IS NULL)),
  ADD FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id), ADD FOREIGN KEY (tenant_id) REFERENCES tenant (id);
CREATE INDEX "adapter_project_id" ON "adapter" ("project_id") WHERE project_id IS NOT NULL;

-- A version carries its app's word, since rows of versions are read far more often than apps.
-- +goose StatementBegin
CREATE FUNCTION platform.carry_sandbox() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  SELECT a.sandbox INTO STRICT NEW.sandbox FROM app a WHERE a.id = NEW.app_id FOR KEY SHARE; -- waits for who opens it
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER carry_sandbox BEFORE INSERT ON manifest FOR EACH ROW EXECUTE FUNCTION platform.carry_sandbox();

DROP POLICY api_read ON app;
CREATE POLICY api_read ON app FOR SELECT TO app_api USING (NOT sandbox
  OR publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
  OR publisher_tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]));
CREATE POLICY api_write ON app FOR INSERT TO app_api WITH CHECK (sandbox
  AND (publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
    OR publisher_project_id = ANY ((SELECT platform.scope('app.projects'))::text[])));
GRANT INSERT ON app TO app_api;

DROP POLICY api_read ON manifest;
CREATE POLICY api_read ON manifest FOR SELECT TO app_api USING ((stage NOT IN ('DRAFT', 'STAGED') AND NOT sandbox)
  OR EXISTS (SELECT FROM app a WHERE a.id = app_id AND (a.publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
    OR a.publisher_tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[])))
  OR EXISTS (SELECT FROM instance i WHERE i.manifest_id = manifest.id)
  OR EXISTS (SELECT FROM instance_generation g WHERE g.manifest_id = manifest.id));

DROP POLICY api_read ON adapter;
CREATE POLICY api_read ON adapter FOR SELECT TO app_api USING (project_id IS NULL
  OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
  OR tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]));
CREATE POLICY api_write ON adapter FOR INSERT TO app_api WITH CHECK (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
  OR project_id = ANY ((SELECT platform.scope('app.projects'))::text[]));
CREATE POLICY api_change ON adapter FOR UPDATE TO app_api USING (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
  OR project_id = ANY ((SELECT platform.scope('app.projects'))::text[]));
GRANT INSERT, UPDATE (url, authority, description, last_seen_at, last_error, narrow_calls, feed_epoch, feed_cursor) ON adapter TO app_api;
