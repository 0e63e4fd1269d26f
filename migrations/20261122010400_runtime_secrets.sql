-- +goose Up
-- Runtime secrets: the value leaves its column by two functions only, which hold the caller against what the secret is
-- bound to; a rotation keeps the value before; whatever a secret was for takes it along when it ends.
GRANT UPDATE (version, sealed, keeper, previous, previous_until, deliveries, delivered_at, rotated_at) ON runtime_secret
  TO app_api, app_operator;

-- The caller may write the new value and cannot read the old one, so that the database itself puts it aside.
-- +goose StatementBegin
CREATE FUNCTION platform.keep_previous() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.previous := CASE WHEN NEW.previous_until IS NULL THEN NULL ELSE OLD.sealed END;
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER keep_previous BEFORE UPDATE ON runtime_secret FOR EACH ROW WHEN (NEW.version > OLD.version)
  EXECUTE FUNCTION platform.keep_previous();

-- Who is asking, as platform.enter has noted: the node, or the operation or instance that a token speaks for. A node
-- keeps its secrets while the member lives on it.
-- +goose StatementBegin
CREATE FUNCTION platform.secret_is_callers(s runtime_secret) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  SELECT CASE s.audience
    WHEN 'NODE' THEN s.node_id = (SELECT (platform.scope('app.node'))[1]) AND EXISTS (
      SELECT FROM member m WHERE m.id = s.member_id AND m.node_id = s.node_id AND m.status <> 'REMOVED')
    WHEN 'ADAPTER' THEN s.instance_id = (SELECT (platform.scope('app.subject'))[1]) OR EXISTS (
      SELECT FROM operation o WHERE o.id = (SELECT (platform.scope('app.subject'))[1]) AND o.instance_id = s.instance_id
        AND o.ended_at IS NULL)
    ELSE false END
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.secret_is_callers(runtime_secret) FROM PUBLIC;

-- The enveloped value of a secret that is bound to the caller, and no row of any other. It counts nothing; sealed is
-- null when nothing can be delivered any more.
-- +goose StatementBegin
CREATE FUNCTION platform.peek_secret(wanted text, OUT tenant text, OUT project text, OUT instance text, OUT purpose text, OUT version bigint,
  OUT expires timestamptz, OUT sealed bytea, OUT sealing_key text)
  RETURNS SETOF record LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT s.tenant_id, s.project_id, s.instance_id, s.purpose, s.version, s.expires_at,
    CASE WHEN s.revoked_at IS NULL AND s.expires_at > now() AND (s.delivery <> 'ONCE' OR s.deliveries = 0) THEN s.sealed END,
    (SELECT n.sealing_key FROM compute_node n WHERE n.id = s.node_id)
  FROM runtime_secret s WHERE s.id = wanted AND platform.secret_is_callers(s)
$$;
-- +goose StatementEnd

-- Counts a delivery of one version to the caller, if there is one to be had: of two takers at once of a secret that is
-- delivered once, one gets an answer. A value that was delivered for the last time is gone with this statement.
-- +goose StatementBegin
CREATE FUNCTION platform.deliver_secret(wanted text, of_version bigint) RETURNS bigint LANGUAGE sql VOLATILE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  UPDATE runtime_secret s SET deliveries = deliveries + 1, delivered_at = now(),
    sealed = CASE WHEN delivery = 'ONCE' THEN NULL ELSE sealed END,
    previous = CASE WHEN delivery = 'ONCE' THEN NULL ELSE previous END,
    previous_until = CASE WHEN delivery = 'ONCE' THEN NULL ELSE previous_until END
  WHERE id = wanted AND version = of_version AND platform.secret_is_callers(s) AND sealed IS NOT NULL AND revoked_at IS NULL
    AND expires_at > now() AND (delivery <> 'ONCE' OR deliveries = 0)
  RETURNING deliveries
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.peek_secret(text), platform.deliver_secret(text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.peek_secret(text), platform.deliver_secret(text, bigint) TO app_api, app_node;

-- What a secret was for takes it along: an instance that is let go, a member that is removed or leaves its node.
-- +goose StatementBegin
CREATE FUNCTION platform.end_secrets() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF TG_TABLE_NAME = 'instance' THEN
    UPDATE runtime_secret SET revoked_at = now(), sealed = NULL, previous = NULL, previous_until = NULL
      WHERE instance_id = NEW.id AND revoked_at IS NULL;
  ELSE
    UPDATE runtime_secret SET revoked_at = now(), sealed = NULL, previous = NULL, previous_until = NULL
      WHERE instance_id = NEW.instance_id AND member_id = NEW.id AND revoked_at IS NULL;
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER end_secrets AFTER UPDATE OF released_at ON instance FOR EACH ROW
  WHEN (OLD.released_at IS NULL AND NEW.released_at IS NOT NULL) EXECUTE FUNCTION platform.end_secrets();
CREATE TRIGGER end_secrets AFTER UPDATE OF status, node_id ON member FOR EACH ROW
  WHEN (NEW.status = 'REMOVED' AND OLD.status <> 'REMOVED' OR NEW.node_id IS DISTINCT FROM OLD.node_id AND OLD.node_id IS NOT NULL)
  EXECUTE FUNCTION platform.end_secrets();
