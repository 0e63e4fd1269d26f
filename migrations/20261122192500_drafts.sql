-- +goose Up
-- A version that is not released is its publisher's and the platform's staff's: what it says, and the artifacts that nothing
-- else pins. Those who have run it see it too: a canary that went back is STAGED again while instances of it live.
DROP POLICY api_read ON manifest;
CREATE POLICY api_read ON manifest FOR SELECT TO app_api USING (stage NOT IN ('DRAFT', 'STAGED')
  OR EXISTS (SELECT FROM app a WHERE a.id = app_id AND (a.publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
    OR a.publisher_tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[])))
  OR EXISTS (SELECT FROM instance i WHERE i.manifest_id = manifest.id)
  OR EXISTS (SELECT FROM instance_generation g WHERE g.manifest_id = manifest.id));

-- The pins that are looked at here are those of the manifests that the caller sees; an artifact of the platform's that
-- nothing pins is seen by all, as before.
DROP POLICY api_read ON artifact;
CREATE POLICY api_read ON artifact FOR SELECT TO app_api USING (
  tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
  OR EXISTS (SELECT FROM manifest_artifact p JOIN manifest m ON m.id = p.manifest_id WHERE p.artifact_id = artifact.id)
  OR (tenant_id IS NULL AND NOT EXISTS (SELECT FROM manifest_artifact p WHERE p.artifact_id = artifact.id)));
