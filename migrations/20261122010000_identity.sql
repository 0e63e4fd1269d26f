-- +goose Up
-- How people log in, how their sessions turn over, and what becomes of a deleted project.

-- A deleted project is nobody's to see or to change: only the workers, and the functions below, know of it.
DROP POLICY api_scope ON project;
CREATE POLICY api_scope ON project TO app_api USING (deleted_at IS NULL AND (
  id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])))
  WITH CHECK (tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]) OR id = ANY ((SELECT platform.scope('app.projects'))::text[]));
DROP POLICY operator_all ON project;
CREATE POLICY operator_all ON project TO app_operator USING (deleted_at IS NULL) WITH CHECK (true);

-- A tenant's name is changed by those who run it.
CREATE POLICY api_change ON tenant FOR UPDATE TO app_api USING (id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
GRANT UPDATE (display_name) ON tenant TO app_api;
GRANT SELECT (replaced_by), UPDATE (expires_at, replaced_by) ON service_account_key TO app_api, app_operator;

-- What is begun while a project is being deleted would outlive it: the last look is the database's.
-- +goose StatementBegin
CREATE FUNCTION platform.guard_live_project() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  IF NEW.project_id IS NOT NULL THEN
    PERFORM FROM project WHERE id = NEW.project_id AND deleted_at IS NULL FOR KEY SHARE;
    IF NOT FOUND AND EXISTS (SELECT FROM project WHERE id = NEW.project_id) THEN
      RAISE EXCEPTION 'the project is deleted' USING ERRCODE = 'GP404';
    END IF;
  END IF;
  RETURN NEW;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.guard_live_project() FROM PUBLIC;
CREATE TRIGGER guard_live_project BEFORE INSERT ON instance FOR EACH ROW EXECUTE FUNCTION platform.guard_live_project();
CREATE TRIGGER guard_live_project BEFORE INSERT ON allocation FOR EACH ROW EXECUTE FUNCTION platform.guard_live_project();
CREATE TRIGGER guard_live_project BEFORE INSERT ON service_account FOR EACH ROW EXECUTE FUNCTION platform.guard_live_project();
CREATE TRIGGER guard_live_project BEFORE INSERT ON role_binding FOR EACH ROW EXECUTE FUNCTION platform.guard_live_project();
CREATE TRIGGER guard_live_project BEFORE INSERT ON webhook FOR EACH ROW EXECUTE FUNCTION platform.guard_live_project();

-- Deletes a project that the caller's scope reaches, with everything that speaks for it or hears of it. Its
-- short name is free again: the row keeps one that nobody can ask for. The verb has authorised, locked the row
-- and made sure that nothing lives in it. Answers how many of each ended; nothing when the row is out of reach.
-- +goose StatementBegin
CREATE FUNCTION platform.delete_project(wanted text, who text, why text) RETURNS jsonb
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE accounts bigint; keys bigint; roles bigint; hooks bigint; shares bigint;
BEGIN
  UPDATE project SET deleted_at = now(), slug = slug || '.' || id WHERE id = wanted AND deleted_at IS NULL
    AND (session_user = 'app_operator' OR id = ANY (platform.scope('app.projects')) OR tenant_id = ANY (platform.scope('app.tenants')));
  IF NOT FOUND THEN RETURN NULL; END IF;
  UPDATE service_account SET deleted_at = now(), updated_at = now() WHERE project_id = wanted AND deleted_at IS NULL;
  GET DIAGNOSTICS accounts = ROW_COUNT;
  UPDATE service_account_key SET revoked_at = now() WHERE project_id = wanted AND revoked_at IS NULL;
  GET DIAGNOSTICS keys = ROW_COUNT;
  UPDATE role_binding SET revoked_at = now() WHERE project_id = wanted AND revoked_at IS NULL;
  GET DIAGNOSTICS roles = ROW_COUNT;
  UPDATE webhook SET deleted_at = now(), updated_at = now() WHERE project_id = wanted AND deleted_at IS NULL;
  GET DIAGNOSTICS hooks = ROW_COUNT;
  UPDATE control_plane_share SET status = CASE status WHEN 'OFFERED' THEN 'WITHDRAWN' ELSE 'DETACHED' END,
    ended_at = now(), ended_by = who, end_reason = why WHERE project_id = wanted AND ended_at IS NULL;
  GET DIAGNOSTICS shares = ROW_COUNT;
  RETURN jsonb_build_object('serviceAccounts', accounts, 'keys', keys, 'roleBindings', roles, 'webhooks', hooks, 'shares', shares);
END $$;
-- +goose StatementEnd

-- A person's session begins, whatever proved the login; false when the person is disabled. At most 50 live at
-- once: the oldest end. The person's row is locked, so that two logins count one after the other and none
-- slips past a disabling.
-- +goose StatementBegin
CREATE FUNCTION platform.begin_session(who text, session_id text, session_hash bytea, ends timestamptz, how text, origin text, agent text)
  RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE person SET last_login_at = now() WHERE id = who AND disabled_at IS NULL;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE session SET revoked_at = now() WHERE id IN (SELECT s.id FROM session s
    WHERE s.user_id = who AND s.revoked_at IS NULL AND s.expires_at > now() ORDER BY s.created_at DESC, s.id DESC OFFSET 49);
  INSERT INTO session (id, user_id, secret_hash, expires_at, created_at, method, origin, agent)
    VALUES (session_id, who, session_hash, ends, now(), how, begin_session.origin, begin_session.agent);
  RETURN true;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.begin_session(text, text, bytea, timestamptz, text, text, text) FROM PUBLIC;

-- A one-time login becomes a session: the code is spent in the same statement that finds it.
DROP FUNCTION platform.redeem_login(text, bytea, text, bytea, timestamptz);
-- +goose StatementBegin
CREATE FUNCTION platform.redeem_login(code_id text, code_hash bytea, session_id text, session_hash bytea, ends timestamptz,
  how text, origin text, agent text) RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE who text;
BEGIN
  UPDATE login_code SET used_at = now()
    WHERE id = code_id AND secret_hash = code_hash AND used_at IS NULL AND expires_at > now() RETURNING user_id INTO who;
  IF who IS NULL OR NOT platform.begin_session(who, session_id, session_hash, ends, how, origin, agent) THEN RETURN NULL; END IF;
  RETURN who;
END $$;
-- +goose StatementEnd

-- A session gets a new secret: the new row takes the place of the old one, which works for a minute more, for
-- requests under way. When the session began and when it ends stay. Answers when it ends; nothing when the old
-- one holds no more or was replaced already.
-- +goose StatementBegin
CREATE FUNCTION platform.rotate_session(old_id text, old_hash bytea, new_id text, new_hash bytea) RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE ends timestamptz;
BEGIN
  INSERT INTO session (id, user_id, secret_hash, expires_at, created_at, method, origin, agent)
    SELECT new_id, s.user_id, new_hash, s.expires_at, s.created_at, s.method, s.origin, s.agent
    FROM session s JOIN person p ON p.id = s.user_id
    WHERE s.id = old_id AND s.secret_hash = old_hash AND s.revoked_at IS NULL AND s.replaced_by IS NULL AND s.expires_at > now()
      AND p.disabled_at IS NULL FOR UPDATE OF s RETURNING expires_at INTO ends;
  IF ends IS NULL THEN RETURN NULL; END IF;
  UPDATE session SET replaced_by = new_id, expires_at = least(expires_at, now() + interval '1 minute') WHERE id = old_id;
  RETURN ends;
END $$;
-- +goose StatementEnd

-- A logout ends the session and the one that has taken its place.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.end_session(session_id text, session_hash bytea) RETURNS boolean
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE session SET revoked_at = now() WHERE revoked_at IS NULL AND id IN (
    SELECT unnest(ARRAY[s.id, s.replaced_by]) FROM session s WHERE s.id = session_id AND s.secret_hash = session_hash);
  RETURN FOUND;
END $$;
-- +goose StatementEnd

-- A login at an identity provider begins. What is long over goes, so that whoever begins and never comes back
-- leaves nothing behind.
-- +goose StatementBegin
CREATE FUNCTION platform.begin_oidc(attempt text, state bytea, browser bytea, nonce text, verifier text, target text, ends timestamptz)
  RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  DELETE FROM login_attempt WHERE id IN (
    SELECT id FROM login_attempt WHERE expires_at < now() - interval '1 hour' LIMIT 100 FOR UPDATE SKIP LOCKED);
  INSERT INTO login_attempt (id, state_hash, browser_hash, nonce, verifier, return_to, expires_at, created_at)
    VALUES (attempt, state, browser, begin_oidc.nonce, begin_oidc.verifier, target, ends, now());
END $$;
-- +goose StatementEnd

-- The login comes back: the attempt is spent by the browser that began it, and by no other.
-- +goose StatementBegin
CREATE FUNCTION platform.take_oidc(attempt text, state bytea, browser bytea, OUT nonce text, OUT verifier text, OUT target text)
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE login_attempt SET used_at = now() WHERE id = attempt AND state_hash = state AND browser_hash = browser
    AND used_at IS NULL AND expires_at > now() RETURNING login_attempt.nonce, login_attempt.verifier, login_attempt.return_to
$$;
-- +goose StatementEnd

-- Whose login an identity is. It is known by issuer and subject; the first time, and only then, a verified
-- address claims the person who was added under it and whom nobody has claimed. Outcomes: known, claimed,
-- unverified, unknown.
-- +goose StatementBegin
CREATE FUNCTION platform.know_identity(identity text, issuer_url text, subject_id text, address text, verified boolean,
  OUT who text, OUT outcome text) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE external_identity SET last_login_at = now(), email = CASE WHEN verified THEN address ELSE email END
    WHERE issuer = issuer_url AND subject = subject_id RETURNING user_id INTO who;
  IF who IS NOT NULL THEN outcome := 'known'; RETURN; END IF;
  IF NOT verified OR address = '' THEN outcome := 'unverified'; RETURN; END IF;
  SELECT p.id INTO who FROM person p WHERE p.email = lower(address) AND p.disabled_at IS NULL FOR UPDATE;
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

-- The login of an identity becomes a session, or a one-time code for the command line that waits for it.
-- Outcomes: those of know_identity, and disabled.
-- +goose StatementBegin
CREATE FUNCTION platform.oidc_session(identity text, issuer_url text, subject_id text, address text, verified boolean,
  session_id text, session_hash bytea, ends timestamptz, origin text, agent text, OUT who text, OUT outcome text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  SELECT k.who, k.outcome INTO who, outcome FROM platform.know_identity(identity, issuer_url, subject_id, address, verified) k;
  IF who IS NOT NULL AND NOT platform.begin_session(who, session_id, session_hash, ends, 'oidc', origin, agent) THEN
    outcome := 'disabled';
  END IF;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION platform.oidc_code(identity text, issuer_url text, subject_id text, address text, verified boolean,
  code_id text, code_hash bytea, ends timestamptz, OUT who text, OUT outcome text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  SELECT k.who, k.outcome INTO who, outcome FROM platform.know_identity(identity, issuer_url, subject_id, address, verified) k;
  IF who IS NULL THEN RETURN; END IF;
  IF EXISTS (SELECT FROM person p WHERE p.id = who AND p.disabled_at IS NOT NULL) THEN outcome := 'disabled'; RETURN; END IF;
  INSERT INTO login_code (id, user_id, secret_hash, expires_at, created_at) VALUES (code_id, who, code_hash, ends, now());
END $$;
-- +goose StatementEnd

-- One-time secrets, login attempts and sessions that have been over for a day are forgotten. Answers how many
-- rows went, at most 4,000 at once.
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
  )
  SELECT (SELECT count(*) FROM codes) + (SELECT count(*) FROM enrolments) + (SELECT count(*) FROM sessions) + (SELECT count(*) FROM attempts)
$$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION platform.delete_project(text, text, text), platform.redeem_login(text, bytea, text, bytea, timestamptz, text, text, text),
  platform.rotate_session(text, bytea, text, bytea), platform.begin_oidc(text, bytea, bytea, text, text, text, timestamptz),
  platform.take_oidc(text, bytea, bytea), platform.know_identity(text, text, text, text, boolean),
  platform.oidc_session(text, text, text, text, boolean, text, bytea, timestamptz, text, text),
  platform.oidc_code(text, text, text, text, boolean, text, bytea, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.delete_project(text, text, text) TO app_api, app_operator;
GRANT EXECUTE ON FUNCTION platform.redeem_login(text, bytea, text, bytea, timestamptz, text, text, text),
  platform.rotate_session(text, bytea, text, bytea), platform.begin_oidc(text, bytea, bytea, text, text, text, timestamptz),
  platform.take_oidc(text, bytea, bytea), platform.oidc_session(text, text, text, text, boolean, text, bytea, timestamptz, text, text),
  platform.oidc_code(text, text, text, text, boolean, text, bytea, timestamptz) TO app_api;
