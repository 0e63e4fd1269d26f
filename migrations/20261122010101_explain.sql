-- +goose Up
-- What explainPermission needs beyond what its caller may list. Both answer only about places that the caller is seen
-- in: a tenant of its own, or anything for callers with a role at platform scope.

-- The bindings of a person that bear on a place, live or ended within 90 days: those of the platform, of the tenant and
-- of the project. With everywhere, all of them: for oneself and for callers with a role at platform scope. sees_tenant is
-- for the one key that any project of a tenant gives.
-- +goose StatementBegin
CREATE FUNCTION platform.bindings_explained(person text, tenant text, project text, sees_tenant boolean, everywhere boolean)
  RETURNS TABLE (id text, role text, tenant_id text, project_id text, expires_at timestamptz, revoked_at timestamptz)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT b.id, b.role, b.tenant_id, b.project_id, b.expires_at, b.revoked_at FROM role_binding b
  WHERE b.user_id = person
    AND (session_user = 'app_operator' OR person = (platform.scope('app.subject'))[1]
      OR NOT everywhere AND tenant = ANY (platform.scope('app.seen_tenants')))
    AND (everywhere OR b.tenant_id IS NULL
      OR b.tenant_id = tenant AND (b.project_id IS NULL OR b.project_id = project OR sees_tenant))
    AND coalesce(b.revoked_at, b.expires_at, now()) > now() - interval '90 days'
  ORDER BY b.revoked_at IS NOT NULL, b.id DESC LIMIT 100000
$$;
-- +goose StatementEnd

-- The people who hold one of the roles in a place, with all they hold there and then: those who might give a
-- permission. Platform staff are named to callers with a role at platform scope alone. At most 1,000 bindings.
-- +goose StatementBegin
CREATE FUNCTION platform.granters(tenant text, project text, roles text[])
  RETURNS TABLE (user_id text, display_name text, role text, tenant_id text, project_id text, expires_at timestamptz)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH held AS (
    SELECT b.user_id, p.display_name, b.role, b.tenant_id, b.project_id, b.expires_at, b.id FROM role_binding b JOIN person p ON p.id = b.user_id
    WHERE b.revoked_at IS NULL AND (b.expires_at IS NULL OR b.expires_at > now()) AND p.disabled_at IS NULL
      AND (b.tenant_id = tenant AND (b.project_id IS NULL OR b.project_id = project)
        OR b.tenant_id IS NULL AND session_user = 'app_operator')
      AND (session_user = 'app_operator' OR tenant = ANY (platform.scope('app.seen_tenants')))
  )
  SELECT h.user_id, h.display_name, h.role, h.tenant_id, h.project_id, h.expires_at FROM held h
  WHERE h.user_id IN (SELECT g.user_id FROM held g WHERE g.role = ANY (roles))
  ORDER BY h.project_id IS NULL, h.tenant_id IS NULL, h.id LIMIT 1000
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.bindings_explained(text, text, text, boolean, boolean), platform.granters(text, text, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.bindings_explained(text, text, text, boolean, boolean), platform.granters(text, text, text[])
  TO app_api, app_operator;
