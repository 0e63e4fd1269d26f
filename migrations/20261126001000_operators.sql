-- +goose Up
-- Adapters act by service accounts where they automate, each for one instance by the account that its project chose; and the
-- platform's operator runs apps of its own, in a tenant of the platform's. See docs/adr/0109 and 0110.
ALTER TABLE "tenant" ADD COLUMN "platform" boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX "tenant_one_platform" ON "tenant" ("platform") WHERE platform;
ALTER TABLE "app" ADD COLUMN "system" boolean NOT NULL DEFAULT false;
ALTER TABLE "app" ADD CHECK (NOT (system AND sandbox));
ALTER TABLE "manifest" ADD COLUMN "system" boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX "serviceaccount_id_project_id" ON "service_account" ("id", "project_id");
ALTER TABLE "instance" ADD COLUMN "system" boolean NOT NULL DEFAULT false, ADD COLUMN "operator_service_account_id" text NULL;
ALTER TABLE "instance" ADD FOREIGN KEY (operator_service_account_id, project_id) REFERENCES service_account (id, project_id);
ALTER TABLE "adapter" ADD COLUMN "service_account_id" text NULL;
ALTER TABLE "adapter" ADD FOREIGN KEY (service_account_id) REFERENCES service_account (id);
GRANT UPDATE (service_account_id) ON adapter TO app_api;

-- The platform's own tenant; NULL while there is none.
-- +goose StatementBegin
CREATE FUNCTION platform.own_tenant() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT id FROM tenant WHERE platform
$$;
-- +goose StatementEnd

-- A version carries its app's word, since rows of versions are read far more often than apps.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.carry_sandbox() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  SELECT a.sandbox, a.system INTO STRICT NEW.sandbox, NEW.system FROM app a WHERE a.id = NEW.app_id FOR KEY SHARE; -- waits for who opens it
  RETURN NEW;
END $$;
-- +goose StatementEnd

-- An instance carries its app's word too, and one of a system app is in the platform's own tenant, whoever writes the row.
-- +goose StatementBegin
CREATE FUNCTION platform.guard_system() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  NEW.system := coalesce((SELECT a.system FROM app a WHERE a.slug = NEW.app_slug), false);
  IF NEW.system AND NEW.tenant_id IS DISTINCT FROM platform.own_tenant() THEN
    RAISE EXCEPTION 'system app % runs in the platform''s own tenant alone', NEW.app_slug USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER guard_system BEFORE INSERT ON instance FOR EACH ROW EXECUTE FUNCTION platform.guard_system();

DROP POLICY api_read ON app;
CREATE POLICY api_read ON app FOR SELECT TO app_api USING ((NOT sandbox AND NOT system)
  OR publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
  OR publisher_tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[])
  OR system AND (SELECT platform.own_tenant()) = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]));
DROP POLICY api_write ON app;
CREATE POLICY api_write ON app FOR INSERT TO app_api WITH CHECK (sandbox
  AND (publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
    OR publisher_project_id = ANY ((SELECT platform.scope('app.projects'))::text[])));

DROP POLICY api_read ON manifest;
CREATE POLICY api_read ON manifest FOR SELECT TO app_api USING ((stage NOT IN ('DRAFT', 'STAGED') AND NOT sandbox AND NOT system)
  OR EXISTS (SELECT FROM app a WHERE a.id = app_id AND (a.publisher_tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
    OR a.publisher_tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[])))
  OR system AND (SELECT platform.own_tenant()) = ANY ((SELECT platform.scope('app.seen_tenants'))::text[])
  OR EXISTS (SELECT FROM instance i WHERE i.manifest_id = manifest.id)
  OR EXISTS (SELECT FROM instance_generation g WHERE g.manifest_id = manifest.id));

-- The account that was chosen for an instance, to the account of the instance's own adapter: no row for everybody else, and
-- an empty account while none is chosen or the chosen one was deleted.
-- +goose StatementBegin
CREATE FUNCTION platform.operator_of(wanted text)
  RETURNS TABLE (tenant_id text, project_id text, account_id text, permission_keys jsonb, limits jsonb, voucher jsonb)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT i.tenant_id::text, i.project_id::text, coalesce(a.id, '')::text, a.permission_keys, a.limits,
      CASE WHEN a.id IS NOT NULL THEN platform.voucher(a.maker_id, a.made_under) END
    FROM instance i JOIN manifest m ON m.id = i.manifest_id JOIN adapter d ON d.name = m.adapter_name AND d.service_account_id = (platform.scope('app.subject'))[1]
    LEFT JOIN service_account a ON a.id = i.operator_service_account_id AND a.deleted_at IS NULL
    WHERE i.id = wanted AND i.released_at IS NULL
$$;
-- +goose StatementEnd

-- Who enters by a token for an instance: the account that is chosen for it, for as long as it is, while the adapter is
-- registered with the account of the key that the token was requested with, and that key holds.
-- +goose StatementBegin
CREATE FUNCTION platform.enter_operator(wanted text, account text, via text,
  OUT subject_kind text, OUT subject_id text, OUT subject_name text, OUT tenant text, OUT project text,
  OUT bindings jsonb, OUT allow jsonb, OUT expires timestamptz, OUT limits jsonb)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  SELECT 'SERVICE_ACCOUNT', a.id, a.name, a.tenant_id, a.project_id,
      CASE WHEN a.maker_id IS NOT NULL THEN jsonb_build_array(platform.voucher(a.maker_id, a.made_under)) END,
      a.permission_keys, k.expires_at, a.limits
    INTO subject_kind, subject_id, subject_name, tenant, project, bindings, allow, expires, limits
    FROM instance i JOIN manifest m ON m.id = i.manifest_id JOIN adapter d ON d.name = m.adapter_name
      JOIN service_account own ON own.id = d.service_account_id AND own.deleted_at IS NULL
      JOIN service_account_key k ON k.id = via AND k.service_account_id = own.id
      JOIN service_account a ON a.id = i.operator_service_account_id AND a.deleted_at IS NULL
    WHERE i.id = wanted AND a.id = account AND i.released_at IS NULL
      AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now());
  IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN; END IF;
  PERFORM platform.set_scope(subject_id, ARRAY[project], NULL, ARRAY[tenant], NULL, platform.attached_to(ARRAY[project]));
END $$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION platform.own_tenant(), platform.guard_system(), platform.operator_of(text),
  platform.enter_operator(text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.own_tenant() TO app_api, app_operator, app_worker;
GRANT EXECUTE ON FUNCTION platform.operator_of(text), platform.enter_operator(text, text, text) TO app_api, app_operator;
