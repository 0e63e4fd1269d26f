-- +goose Up
-- Who people and service accounts are to the programs of a tenant's apps: a name and a number, given at the first need and
-- never again to anybody else. Not Ent's: plain statements alone read it, and the function below writes it. See docs/adr/0118.
CREATE TABLE posix_identity (
  tenant_id text NOT NULL REFERENCES tenant (id),
  subject_id text NOT NULL,                          -- no reference: the row outlives whom it was given to
  name text NOT NULL CHECK (name ~ '^[a-z]([a-z0-9_-]{0,29}[a-z0-9_])?$'),
  uid integer NOT NULL CHECK (uid BETWEEN 1000 AND 59999),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, subject_id),
  UNIQUE (tenant_id, uid),
  UNIQUE (tenant_id, name)
);
CREATE INDEX posix_identity_subject ON posix_identity (subject_id);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON posix_identity FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();

ALTER TABLE posix_identity ENABLE ROW LEVEL SECURITY;
ALTER TABLE posix_identity FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON posix_identity TO app_owner USING (true) WITH CHECK (true);
CREATE POLICY operator_all ON posix_identity FOR SELECT TO app_operator USING (true);
CREATE POLICY api_scope ON posix_identity FOR SELECT TO app_api USING (
  subject_id = (SELECT (platform.scope('app.subject'))[1])
  OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
  OR EXISTS (SELECT FROM service_account a WHERE a.id = subject_id AND a.project_id = ANY ((SELECT platform.scope('app.projects'))::text[])));
GRANT SELECT ON posix_identity TO app_api, app_operator;

-- Gives the caller its identity in a tenant, the one that it has or a new one: the next number, and the name that is wished
-- for, with a number at its end where the name is another's or reserved. Nobody gets one for somebody else. One at a time
-- in a tenant: the next number is read under the lock.
-- +goose StatementBegin
CREATE FUNCTION platform.give_posix(of_tenant text, wished text, reserved boolean) RETURNS posix_identity
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  who text := (platform.scope('app.subject'))[1];
  given posix_identity;
  ending text := '';
BEGIN
  IF who IS NULL OR NOT (session_user = 'app_operator' OR of_tenant = ANY (coalesce(platform.scope('app.seen_tenants'), '{}'))) THEN
    RAISE EXCEPTION 'the caller has no identity in tenant %', of_tenant USING ERRCODE = 'insufficient_privilege';
  END IF;
  PERFORM FROM tenant WHERE id = of_tenant FOR NO KEY UPDATE;
  SELECT * INTO given FROM posix_identity p WHERE p.tenant_id = of_tenant AND p.subject_id = who;
  IF FOUND THEN RETURN given; END IF;
  SELECT coalesce(max(p.uid), 999) + 1 INTO given.uid FROM posix_identity p WHERE p.tenant_id = of_tenant;
  IF given.uid > 59999 THEN
    RAISE EXCEPTION 'the tenant has given all its POSIX ids, 1000 to 59999' USING ERRCODE = 'GP510';
  END IF;
  given.name := wished;
  WHILE reserved AND ending = '' OR EXISTS (SELECT FROM posix_identity p WHERE p.tenant_id = of_tenant AND p.name = given.name) LOOP
    ending := coalesce(nullif(ending, ''), '1')::int + 1;
    given.name := left(wished, 31 - length(ending)) || ending;
  END LOOP;
  INSERT INTO posix_identity (tenant_id, subject_id, name, uid) VALUES (of_tenant, who, given.name, given.uid) RETURNING * INTO given;
  RETURN given;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.give_posix(text, text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.give_posix(text, text, boolean) TO app_api, app_operator;
