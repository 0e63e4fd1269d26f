-- +goose Up
-- A person belongs to a tenant because they accept it, because the tenant's domain is verified, or because the platform's staff
-- added them. An address is a person's in each tenant by itself: nobody learns from one tenant who is in another.
DROP INDEX "person_email_key";
ALTER TABLE "person" ADD COLUMN "invited_at" timestamptz NULL, ADD COLUMN "invitation_ends_at" timestamptz NULL,
  ADD COLUMN "accepted_at" timestamptz NULL;
CREATE UNIQUE INDEX "person_tenant_email" ON "person" ("tenant_id", "email");
CREATE UNIQUE INDEX "person_staff_email" ON "person" ("email") WHERE (tenant_id IS NULL);
CREATE INDEX "user_email" ON "person" ("email");
ALTER TABLE "tenant" ADD COLUMN "domains" jsonb NULL;
CREATE TABLE "invitation" ("id" text NOT NULL, "user_id" text NOT NULL, "secret_hash" bytea NOT NULL, "attempt_id" text NULL, "expires_at" timestamptz NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
CREATE INDEX "invitation_user_id" ON "invitation" ("user_id");
CREATE INDEX "invitation_attempt_id" ON "invitation" ("attempt_id");
CREATE INDEX "invitation_expires_at" ON "invitation" ("expires_at");
ALTER TABLE "invitation" ADD FOREIGN KEY (user_id) REFERENCES person (id);
ALTER TABLE "invitation" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "invitation" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "invitation" TO app_owner USING (true) WITH CHECK (true);

-- A code for somebody whom the caller may add to the tenant; the codes before it end. False when
-- the person is out of reach or waits for no acceptance.
-- +goose StatementBegin
CREATE FUNCTION platform.invite(who text, code_id text, code_hash bytea, ends timestamptz) RETURNS boolean
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM FROM person p WHERE p.id = who AND p.invited_at IS NOT NULL AND p.accepted_at IS NULL AND p.disabled_at IS NULL
    AND NOT EXISTS (SELECT FROM external_identity e WHERE e.user_id = p.id)
    AND (session_user <> 'app_api' OR p.tenant_id = ANY (platform.scope('app.tenants'))) FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  DELETE FROM invitation WHERE user_id = who;
  INSERT INTO invitation (id, user_id, secret_hash, expires_at, created_at) VALUES (code_id, who, code_hash, ends, now());
  UPDATE person SET invitation_ends_at = ends WHERE id = who;
  RETURN true;
END $$;
-- +goose StatementEnd

-- The codes of somebody whom the caller may add to the tenant end at once. False when the person is out of reach or has none.
-- +goose StatementBegin
CREATE FUNCTION platform.end_invitations(who text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM FROM person p WHERE p.id = who AND p.invitation_ends_at IS NOT NULL AND p.accepted_at IS NULL
    AND (session_user <> 'app_api' OR p.tenant_id = ANY (platform.scope('app.tenants'))) FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  DELETE FROM invitation WHERE user_id = who;
  UPDATE person SET invitation_ends_at = NULL WHERE id = who;
  RETURN true;
END $$;
-- +goose StatementEnd

-- Whose invitation it is, to who shows its secret: the tenant's name for people.
-- +goose StatementBegin
CREATE FUNCTION platform.invitation_of(code_id text, code_hash bytea) RETURNS text
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT t.display_name FROM invitation i JOIN person p ON p.id = i.user_id JOIN tenant t ON t.id = p.tenant_id
    WHERE i.id = code_id AND i.secret_hash = code_hash AND i.expires_at > now() AND p.disabled_at IS NULL
$$;
-- +goose StatementEnd

-- A login begins by an invitation. Whether there is one is not told.
-- +goose StatementBegin
CREATE FUNCTION platform.begin_invited(attempt text, code_id text, code_hash bytea) RETURNS void
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE invitation SET attempt_id = attempt WHERE id = code_id AND secret_hash = code_hash AND expires_at > now()
$$;
-- +goose StatementEnd

-- The login that was begun by an invitation comes back. It accepts with a verified address that is the one that was invited,
-- and when neither the login nor the person is known by another. Outcomes: none where there was no invitation, accepted, refused;
-- a refusal changes nothing, and does not say for which of the reasons.
-- +goose StatementBegin
CREATE FUNCTION platform.accept_invited(attempt text, issuer_url text, subject_id text, address text, verified boolean) RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE who text;
BEGIN
  IF NOT EXISTS (SELECT FROM invitation i WHERE i.attempt_id = attempt) THEN RETURN 'none'; END IF;
  SELECT p.id INTO who FROM invitation i JOIN person p ON p.id = i.user_id WHERE i.attempt_id = attempt AND i.expires_at > now()
    AND verified AND p.email = lower(address) AND p.disabled_at IS NULL AND p.accepted_at IS NULL
    AND NOT EXISTS (SELECT FROM external_identity e WHERE e.user_id = p.id OR (e.issuer = issuer_url AND e.subject = subject_id))
    FOR UPDATE OF p;
  IF who IS NULL THEN RETURN 'refused'; END IF;
  DELETE FROM invitation WHERE user_id = who;
  UPDATE person SET accepted_at = now(), invitation_ends_at = NULL WHERE id = who;
  RETURN 'accepted';
END $$;
-- +goose StatementEnd

-- Whose login an identity is. It is known by issuer and subject; the first time, and only then, a verified address claims the
-- person who was added under it, whom nobody has claimed, and whom the platform, a verified domain of the tenant or the person's
-- own acceptance vouches for. Of several the one that was accepted last comes first, then staff, then the oldest. Outcomes:
-- known, claimed, unverified, unknown.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.know_identity(identity text, issuer_url text, subject_id text, address text, verified boolean,
  OUT who text, OUT outcome text) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE external_identity SET last_login_at = now(), email = CASE WHEN verified THEN address ELSE email END
    WHERE issuer = issuer_url AND subject = subject_id RETURNING user_id INTO who;
  IF who IS NOT NULL THEN outcome := 'known'; RETURN; END IF;
  IF NOT verified OR address = '' THEN outcome := 'unverified'; RETURN; END IF;
  SELECT p.id INTO who FROM person p LEFT JOIN tenant t ON t.id = p.tenant_id WHERE p.email = lower(address) AND p.disabled_at IS NULL
    AND (p.invited_at IS NULL OR p.accepted_at IS NOT NULL OR coalesce(t.domains, '[]') ? split_part(lower(address), '@', 2))
    AND (NOT EXISTS (SELECT FROM external_identity e WHERE e.user_id = p.id)
      OR EXISTS (SELECT FROM external_identity e WHERE e.user_id = p.id AND e.issuer = issuer_url AND e.subject = subject_id))
    ORDER BY p.accepted_at DESC NULLS LAST, p.tenant_id IS NOT NULL, p.created_at, p.id LIMIT 1 FOR UPDATE OF p;
  IF EXISTS (SELECT FROM external_identity e WHERE e.user_id = who AND e.issuer = issuer_url AND e.subject = subject_id) THEN
    outcome := 'known'; RETURN; -- the same person's other browser was faster
  END IF;
  IF who IS NULL OR EXISTS (SELECT FROM external_identity e WHERE e.user_id = who) THEN
    who := NULL; outcome := 'unknown'; RETURN;
  END IF;
  INSERT INTO external_identity (id, user_id, issuer, subject, email, last_login_at, created_at)
    VALUES (identity, who, issuer_url, subject_id, address, now(), now());
  outcome := 'claimed';
END $$;
-- +goose StatementEnd

-- One-time secrets, invitations, login attempts and sessions that have been over for a day are forgotten. Answers how many rows
-- went, at most 5,000 at once.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.forget_secrets() RETURNS bigint
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH codes AS (
    DELETE FROM login_code WHERE id IN (
      SELECT id FROM login_code WHERE expires_at < now() - interval '1 day' LIMIT 1000) RETURNING id
  ), enrolments AS (
    DELETE FROM node_enrolment WHERE id IN (
      SELECT id FROM node_enrolment WHERE used_at IS NULL AND expires_at < now() - interval '1 day' LIMIT 1000) RETURNING id
  ), sessions AS (
    DELETE FROM session WHERE id IN (
      SELECT id FROM session WHERE expires_at < now() - interval '1 day' LIMIT 1000) RETURNING id
  ), attempts AS (
    DELETE FROM login_attempt WHERE id IN (
      SELECT id FROM login_attempt WHERE expires_at < now() - interval '1 day' LIMIT 1000) RETURNING id
  ), invitations AS (
    DELETE FROM invitation WHERE id IN (
      SELECT id FROM invitation WHERE expires_at < now() - interval '1 day' LIMIT 1000) RETURNING id
  )
  SELECT (SELECT count(*) FROM codes) + (SELECT count(*) FROM enrolments) + (SELECT count(*) FROM sessions) + (SELECT count(*) FROM attempts)
    + (SELECT count(*) FROM invitations)
$$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION platform.invite(text, text, bytea, timestamptz), platform.end_invitations(text), platform.invitation_of(text, bytea),
  platform.begin_invited(text, text, bytea), platform.accept_invited(text, text, text, text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.invite(text, text, bytea, timestamptz), platform.end_invitations(text) TO app_api, app_operator;
GRANT EXECUTE ON FUNCTION platform.invitation_of(text, bytea), platform.begin_invited(text, text, bytea),
  platform.accept_invited(text, text, text, text, boolean) TO app_api;
