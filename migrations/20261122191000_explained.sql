-- +goose Up
-- Explanations mark what was given under break-glass.
DROP FUNCTION platform.bindings_explained(text, text, text, boolean, boolean);

-- +goose StatementBegin
CREATE FUNCTION platform.bindings_explained(person text, tenant text, project text, sees_tenant boolean, everywhere boolean)
  RETURNS TABLE (id text, role text, tenant_id text, project_id text, expires_at timestamptz, revoked_at timestamptz, break_glass boolean)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT b.id, b.role, b.tenant_id, b.project_id, b.expires_at, b.revoked_at, b.break_glass FROM role_binding b
  WHERE b.user_id = person
    AND (session_user = 'app_operator' OR person = (platform.scope('app.subject'))[1]
      OR NOT everywhere AND tenant = ANY (platform.scope('app.seen_tenants')))
    AND (everywhere OR b.tenant_id IS NULL
      OR b.tenant_id = tenant AND (b.project_id IS NULL OR b.project_id = project OR sees_tenant))
    AND coalesce(b.revoked_at, b.expires_at, now()) > now() - interval '90 days'
  ORDER BY b.revoked_at IS NOT NULL, b.id DESC LIMIT 100000
$$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION platform.bindings_explained(text, text, text, boolean, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.bindings_explained(text, text, text, boolean, boolean) TO app_api, app_operator;
