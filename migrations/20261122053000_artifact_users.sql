-- +goose Up
-- How many live instances use an artifact, those of other tenants too, for who may promote it: it is not retired while
-- there are any. Whose they are is not told.
-- +goose StatementBegin
CREATE FUNCTION platform.live_users(wanted text) RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT count(*) FROM instance i JOIN manifest_artifact p ON p.manifest_id = i.manifest_id JOIN artifact a ON a.id = p.artifact_id
    WHERE p.artifact_id = wanted AND i.released_at IS NULL AND (session_user <> 'app_api'
      OR a.tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR a.project_id = ANY ((SELECT platform.scope('app.projects'))::text[]))
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.live_users(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.live_users(text) TO app_api, app_operator;
