-- +goose Up
-- One canary of an app at a time: of several, which older versions of this schema allowed, the newest stays.
UPDATE manifest m SET stage = 'STAGED' WHERE m.stage = 'CANARY'
  AND EXISTS (SELECT FROM manifest n WHERE n.app_slug = m.app_slug AND n.stage = 'CANARY' AND n.id > m.id);
CREATE UNIQUE INDEX "manifest_one_canary" ON "manifest" ("app_slug") WHERE ((stage)::text = 'CANARY'::text);

-- What the documents of earlier versions say of their kind.
UPDATE manifest SET artifact_kind = convert_from(document, 'UTF8')::jsonb ->> 'artifactKind'
  WHERE artifact_kind <> convert_from(document, 'UTF8')::jsonb ->> 'artifactKind';

-- The artifacts that a manifest pins, locked against a step of their own until the commit: a publisher may not lock
-- the platform's.
-- +goose StatementBegin
CREATE FUNCTION platform.hold_artifacts(wanted text) RETURNS TABLE (name text, digest text, stage text, quarantined boolean, why text)
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT a.name, a.digest, a.stage, a.quarantined_at IS NOT NULL, a.quarantine_reason
  FROM artifact a JOIN manifest_artifact p ON p.artifact_id = a.id WHERE p.manifest_id = wanted ORDER BY a.id FOR SHARE OF a
$$;
-- +goose StatementEnd

-- How many live instances use a manifest: for the platform's staff and whoever reaches the app's publisher, who does not
-- see the instances of other tenants.
-- +goose StatementBegin
CREATE FUNCTION platform.users_of_manifest(wanted text) RETURNS bigint
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT count(*) FROM instance i WHERE i.manifest_id = wanted AND i.released_at IS NULL
    AND (session_user <> 'app_api' OR EXISTS (SELECT FROM manifest m JOIN app a ON a.id = m.app_id WHERE m.id = wanted
      AND (a.publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
        OR a.publisher_project_id = ANY ((SELECT platform.scope('app.projects'))::text[]))))
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.hold_artifacts(text), platform.users_of_manifest(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.hold_artifacts(text), platform.users_of_manifest(text) TO app_api, app_operator;
