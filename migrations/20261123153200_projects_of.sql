-- +goose Up
-- A tenant's projects, with those that were deleted, whose usage stays on its books: whoever makes a run again counts it too.
CREATE FUNCTION platform.projects_of(tenant text) RETURNS SETOF text
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT id FROM project WHERE tenant_id = tenant
    AND (session_user <> 'app_api' OR tenant = ANY (platform.scope('app.seen_tenants') || platform.scope('app.tenants'))) $$;
REVOKE ALL ON FUNCTION platform.projects_of(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.projects_of(text) TO app_api, app_operator, app_worker;
-- +goose Down
