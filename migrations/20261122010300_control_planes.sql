-- +goose Up
-- Shared control planes: what each end of a share may do below the verbs, what the other project is shown, and
-- how far a change of one reaches.

-- Whether the caller stands at the owner's end of a share, or at the end that it is offered to.
-- +goose StatementBegin
CREATE FUNCTION platform.reaches_project(wanted text, of_tenant text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT session_user = 'app_operator' OR wanted = ANY (coalesce(platform.scope('app.projects'), '{}'))
    OR of_tenant = ANY (coalesce(platform.scope('app.tenants'), '{}'))
$$;
-- +goose StatementEnd

-- A caller writes a share only from its own end: the owner offers what is truly theirs and serves the tenant,
-- and nobody but the other project accepts. Whose it is never changes.
-- +goose StatementBegin
CREATE FUNCTION platform.guard_share() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  IF session_user NOT IN ('app_api', 'app_operator') THEN RETURN NEW; END IF;
  IF TG_OP = 'INSERT' THEN
    IF NEW.status <> 'OFFERED' OR NEW.project_id = NEW.owner_project_id
        OR NOT platform.reaches_project(NEW.owner_project_id, NEW.tenant_id)
        OR NOT EXISTS (SELECT FROM instance i WHERE i.id = NEW.instance_id AND i.project_id = NEW.owner_project_id
          AND i.tenant_id = NEW.tenant_id AND i.control_plane_scope = 'TENANT') THEN
      RAISE EXCEPTION 'only the owner of a shared control plane offers it' USING ERRCODE = 'insufficient_privilege';
    END IF;
  ELSIF (NEW.tenant_id, NEW.project_id, NEW.owner_project_id, NEW.instance_id)
      IS DISTINCT FROM (OLD.tenant_id, OLD.project_id, OLD.owner_project_id, OLD.instance_id) THEN
    RAISE EXCEPTION 'the ends of a share never change' USING ERRCODE = 'insufficient_privilege';
  ELSIF OLD.status <> NEW.status AND NEW.status IN ('ATTACHED', 'DECLINED')
      AND NOT platform.reaches_project(NEW.project_id, NEW.tenant_id) THEN
    RAISE EXCEPTION 'only the project that a control plane is offered to answers' USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN NEW;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.guard_share() FROM PUBLIC;
CREATE TRIGGER guard_share BEFORE INSERT OR UPDATE ON control_plane_share FOR EACH ROW EXECUTE FUNCTION platform.guard_share();

-- When a control plane is over, so are its shares, in the transaction that ends it, whichever that is.
-- +goose StatementBegin
CREATE FUNCTION platform.end_shares() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE control_plane_share SET status = CASE status WHEN 'OFFERED' THEN 'WITHDRAWN' ELSE 'DETACHED' END,
    ended_at = coalesce(NEW.released_at, now()), ended_by = 'system', end_reason = 'the control plane has ended'
    WHERE instance_id = NEW.id AND ended_at IS NULL;
  RETURN NULL;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.end_shares() FROM PUBLIC;
CREATE TRIGGER end_shares AFTER UPDATE OF status, released_at ON instance FOR EACH ROW
  WHEN ((NEW.status = 'STOPPED' AND OLD.status <> 'STOPPED') OR (NEW.released_at IS NOT NULL AND OLD.released_at IS NULL))
  EXECUTE FUNCTION platform.end_shares();

-- The project that an offer is made to, held until the commit: the owner need not see its row. Nothing when it is
-- not a live project of the tenant, or when the caller does not reach the owner's.
-- +goose StatementBegin
CREATE FUNCTION platform.hold_offered(owner_project text, of_tenant text, wanted text) RETURNS text
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT id FROM project WHERE id = wanted AND tenant_id = of_tenant AND deleted_at IS NULL
    AND platform.reaches_project(owner_project, of_tenant) FOR SHARE
$$;
-- +goose StatementEnd

-- The instance of a share, locked for either end: who attaches or leaves may not lock another project's row.
-- +goose StatementBegin
CREATE FUNCTION platform.hold_shared(share text) RETURNS SETOF instance
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT i.* FROM instance i WHERE i.id = (SELECT s.instance_id FROM control_plane_share s WHERE s.id = share
    AND (platform.reaches_project(s.project_id, s.tenant_id) OR platform.reaches_project(s.owner_project_id, s.tenant_id)))
  FOR UPDATE
$$;
-- +goose StatementEnd

-- Tells the timeline of a shared instance what one end of its share did; answers the event's number. The order in
-- the project's feed is as for every event: see service/ledger/event.
-- +goose StatementBegin
CREATE FUNCTION platform.tell_shared(share text, event_id text, kind text, words text, details jsonb, correlation text, at timestamptz)
  RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE i instance; number bigint;
BEGIN
  IF kind NOT LIKE 'apps.instance.control\_plane\_%' AND kind <> 'apps.instance.action_invoked' THEN
    RAISE EXCEPTION 'a share does not tell of %', kind USING ERRCODE = 'insufficient_privilege';
  END IF;
  UPDATE instance SET revision = revision + 1, updated_at = at WHERE id = (SELECT s.instance_id FROM control_plane_share s
    WHERE s.id = share AND (platform.reaches_project(s.project_id, s.tenant_id) OR platform.reaches_project(s.owner_project_id, s.tenant_id)))
    RETURNING * INTO i;
  IF NOT FOUND THEN RETURN NULL; END IF;
  number := i.revision;
  INSERT INTO app_instance_event (id, tenant_id, project_id, instance_id, seq, type, app_slug, permission_family, message, payload,
    correlation_id, occurred_at, xid) VALUES (event_id, i.tenant_id, i.project_id, i.id, number, kind, i.app_slug, i.permission_family,
    words, details, correlation, at, GREATEST(pg_current_xact_id()::text::bigint,
      (SELECT e.xid FROM app_instance_event e WHERE e.instance_id = i.id AND e.seq = number - 1)));
  RETURN number;
END $$;
-- +goose StatementEnd

-- What each end sees of shared control planes: the owner's end always, the other one while the share is open.
-- +goose StatementBegin
CREATE FUNCTION platform.shared_planes(shares text[]) RETURNS TABLE (share_id text, share_tenant text, share_project text, owner_project text,
  instance_id text, name text, app_slug text, app_version text, permission_family text, status text, health text, document bytea)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT s.id, s.tenant_id, s.project_id, s.owner_project_id, i.id, i.name, i.app_slug, i.app_version, i.permission_family, i.status, i.health,
    m.document
  FROM control_plane_share s JOIN instance i ON i.id = s.instance_id JOIN manifest m ON m.id = i.manifest_id
  WHERE s.id = ANY (shares) AND (platform.reaches_project(s.owner_project_id, s.tenant_id)
    OR (s.ended_at IS NULL AND platform.reaches_project(s.project_id, s.tenant_id)))
  LIMIT 500
$$;
-- +goose StatementEnd

-- The projects that are attached to an instance, for who reaches its own: at most 100, as many as may be.
-- +goose StatementBegin
CREATE FUNCTION platform.attached_projects(wanted text) RETURNS TABLE (project_id text, display_name text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT p.id, p.display_name FROM control_plane_share s JOIN project p ON p.id = s.project_id
  WHERE s.instance_id = wanted AND s.status = 'ATTACHED' AND s.ended_at IS NULL
    AND (session_user = 'app_worker' OR platform.reaches_project(s.owner_project_id, s.tenant_id))
  ORDER BY p.id LIMIT 100
$$;
-- +goose StatementEnd

-- Whom a change of an instance would touch: its own project first, then those attached, oldest first. Who can use
-- it holds one of the keys that its app's actions ask for: people through the roles (role_names and role_keys are
-- the pairs of the static policy), service accounts by their lists. Recent are the last day's actions among the
-- instance's newest 10,000 audit entries.
-- +goose StatementBegin
CREATE FUNCTION platform.impact_of(wanted text, role_names text[], role_keys text[]) RETURNS TABLE (tenant_id text, control_plane_scope text,
  members bigint, operations bigint, attached bigint, project_id text, display_name text, attached_at timestamptz, subjects bigint, recent bigint)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH plane AS MATERIALIZED (
    SELECT i.id, i.tenant_id, i.project_id, i.control_plane_scope, m.document FROM instance i JOIN manifest m ON m.id = i.manifest_id
    WHERE i.id = wanted AND (session_user = 'app_worker' OR platform.reaches_project(i.project_id, i.tenant_id))
  ), shares AS MATERIALIZED (
    SELECT s.project_id, s.answered_at FROM control_plane_share s JOIN plane ON plane.id = s.instance_id
    WHERE s.status = 'ATTACHED' AND s.ended_at IS NULL
  ), served AS MATERIALIZED (
    SELECT plane.project_id AS id, NULL::timestamptz AS since, 0 AS place FROM plane
    UNION ALL (SELECT s.project_id, s.answered_at, 1 FROM shares s ORDER BY s.answered_at, s.project_id LIMIT 99)
  ), keys AS MATERIALIZED (
    SELECT DISTINCT a ->> 'permissionKey' AS key FROM plane, -- json keeps what jsonb refuses, such as an escaped NUL in a text
      json_array_elements(CASE WHEN json_typeof(convert_from(plane.document, 'UTF8')::json -> 'actions') = 'array'
        THEN convert_from(plane.document, 'UTF8')::json -> 'actions' ELSE '[]' END) a
  ), roles AS MATERIALIZED (
    SELECT DISTINCT pairs.role FROM unnest(role_names, role_keys) AS pairs (role, key) JOIN keys ON keys.key = pairs.key
  ), bound AS MATERIALIZED (
    SELECT b.user_id, b.project_id FROM served JOIN role_binding b ON b.project_id = served.id
      WHERE b.role IN (SELECT role FROM roles) AND b.revoked_at IS NULL AND (b.expires_at IS NULL OR b.expires_at > now())
    UNION ALL SELECT b.user_id, NULL FROM plane JOIN role_binding b ON b.tenant_id = plane.tenant_id AND b.project_id IS NULL
      WHERE b.role IN (SELECT role FROM roles) AND b.revoked_at IS NULL AND (b.expires_at IS NULL OR b.expires_at > now())
  ), people AS (
    SELECT served.id, count(DISTINCT bound.user_id) AS n FROM served JOIN bound ON bound.project_id = served.id OR bound.project_id IS NULL
    JOIN person u ON u.id = bound.user_id AND u.disabled_at IS NULL GROUP BY served.id
  ), robots AS (
    SELECT a.project_id AS id, count(*) AS n FROM service_account a WHERE a.project_id IN (SELECT id FROM served) AND a.deleted_at IS NULL
      AND a.permission_keys ?| (SELECT coalesce(array_agg(key), '{}') FROM keys) GROUP BY a.project_id
  ), recent AS (
    SELECT e.project_id AS id, count(*) AS n FROM (SELECT x.project_id, x.action, x.allowed, x.created_at FROM audit_entry x
      WHERE x.object_id = (SELECT id FROM plane) ORDER BY x.id DESC LIMIT 10000) e
    WHERE e.allowed AND e.action LIKE 'invokeAction %' AND e.created_at > now() - interval '24 hours' GROUP BY e.project_id
  )
  SELECT plane.tenant_id, plane.control_plane_scope,
    (SELECT count(*) FROM member m WHERE m.instance_id = plane.id AND m.status <> 'REMOVED'),
    (SELECT count(*) FROM operation o WHERE o.instance_id = plane.id AND o.ended_at IS NULL),
    (SELECT count(*) FROM shares), p.id, p.display_name, served.since, coalesce(people.n, 0) + coalesce(robots.n, 0), coalesce(recent.n, 0)
  FROM plane JOIN served ON true JOIN project p ON p.id = served.id
  LEFT JOIN people ON people.id = served.id LEFT JOIN robots ON robots.id = served.id LEFT JOIN recent ON recent.id = served.id
  ORDER BY served.place, served.since, p.id
$$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION platform.reaches_project(text, text), platform.hold_offered(text, text, text), platform.hold_shared(text),
  platform.tell_shared(text, text, text, text, jsonb, text, timestamptz), platform.shared_planes(text[]),
  platform.attached_projects(text), platform.impact_of(text, text[], text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.hold_offered(text, text, text), platform.hold_shared(text),
  platform.tell_shared(text, text, text, text, jsonb, text, timestamptz), platform.shared_planes(text[]),
  platform.attached_projects(text), platform.impact_of(text, text[], text[]) TO app_api, app_operator;
GRANT EXECUTE ON FUNCTION platform.attached_projects(text) TO app_worker;
