-- +goose Up
-- Who runs a project may name the people of its tenant, to give them roles there; what they may
-- list is still decided by their permission keys.
CREATE POLICY api_seen ON person FOR SELECT TO app_api USING (
  tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]));

-- A tenant's admin may mint a login for a person of that tenant.
CREATE POLICY api_write ON login_code FOR INSERT TO app_api WITH CHECK (
  EXISTS (SELECT FROM person p WHERE p.id = user_id AND p.tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])));
GRANT INSERT ON login_code TO app_api;
