-- +goose Up
-- A row of a project names the project's own tenant. Tables that refer to their project together with its tenant are held
-- by that reference; the others, which are written often, are checked as their row is written by a tenant's caller, without a
-- lock on the project. Without this a row could name one's own tenant and another's project, and be seen there.
-- +goose StatementBegin
DO $$
DECLARE p record;
BEGIN
  FOR p IN
    SELECT l.tablename, l.policyname, l.with_check FROM pg_policies l
    WHERE l.schemaname = 'public' AND l.policyname = 'api_scope' AND l.with_check IS NOT NULL
      AND (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = l.tablename::regclass AND a.attname IN ('tenant_id', 'project_id') AND NOT a.attisdropped) = 2
      AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conrelid = l.tablename::regclass AND c.confrelid = 'project'::regclass AND cardinality(c.conkey) = 2)
  LOOP
    EXECUTE format('ALTER POLICY %I ON %I WITH CHECK ((%s) AND (project_id IS NULL OR EXISTS (
      SELECT FROM project p WHERE p.id = %2$I.project_id AND p.tenant_id = %2$I.tenant_id)))', p.policyname, p.tablename, p.with_check);
  END LOOP;
END $$;
-- +goose StatementEnd

-- A statement of one tenant's caller cannot write into another tenant's audit: an entry is about the platform or about
-- a tenant that the caller is seen in; and nobody reads an entry of another tenant because it names their project.
ALTER POLICY api_write ON audit_entry WITH CHECK (
  tenant_id IS NULL OR tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]));
ALTER POLICY api_read ON audit_entry USING (
  project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) AND tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[])
  OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
