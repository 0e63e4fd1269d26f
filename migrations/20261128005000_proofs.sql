-- +goose Up
-- An answer that the API keeps is shown again only to whom the same rights give it, and only where the rows that it was made
-- from are the same as then. A proof says which they are: rights by what they give, as platform.enter answers them, and of a
-- row the transaction that wrote it. A number of a transaction does not come back within an hour, and never where nothing was
-- lost: a proof names a row of platform.access_scope, the anchor, that is no older than that, and gone after a crash and on
-- another server. See docs/adr/0126.

-- The bindings of a person that hold now.
-- +goose StatementBegin
CREATE FUNCTION platform.held_by(person_id text) RETURNS SETOF public.role_binding LANGUAGE sql STABLE AS $$
  SELECT r.* FROM public.role_binding r WHERE r.user_id = person_id AND r.revoked_at IS NULL
    AND (r.expires_at IS NULL OR r.expires_at > now()) AND (r.made_under IS NULL OR platform.still_given(r.made_under))
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.bindings_of(person_id text) RETURNS jsonb LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  RETURN (SELECT coalesce(jsonb_agg(jsonb_build_object('role', b.role, 'tenant', b.tenant_id, 'project', b.project_id, 'expires', b.expires_at)), '[]')
    FROM (SELECT h.* FROM platform.held_by(person_id) h ORDER BY h.id LIMIT 100000) b);
END $$;
-- +goose StatementEnd

-- What gives a person rights to a project, by a session that holds: no row for whoever has none of its own there, and for
-- anything else that a caller may show. What somebody sees through a share is not proved, nor what more than a hundred
-- bindings give. The bindings' text is that of platform.bindings_of. The anchor is the one named, for as long as it is there,
-- or else the person's own. In SQL and without settings, so that it becomes a part of the statements below: one plan, and
-- one beginning, for all that a statement proves.
-- +goose StatementBegin
CREATE FUNCTION platform.prove_rights(credential text, hash bytea, anchor bigint, of_tenant text, of_project text) RETURNS TABLE (rights text)
  LANGUAGE sql STABLE AS $$
  SELECT coalesce(
      (SELECT a.number || ' ' || extract(epoch FROM a.written_at) FROM platform.access_scope a
        WHERE a.number = anchor AND a.written_at > now() - interval '1 hour'),
      (SELECT a.number || ' ' || extract(epoch FROM a.written_at) FROM platform.access_scope a
        WHERE a.subject = p.id AND a.written_at > now() - interval '1 hour' ORDER BY a.number DESC LIMIT 1))
    || ' ' || encode(sha256(convert_to(concat(p.tenant_id, ' ', b.bindings), 'UTF8')), 'hex')
  FROM public.session s JOIN public.person p ON p.id = s.user_id AND p.disabled_at IS NULL
  CROSS JOIN LATERAL (SELECT jsonb_agg(jsonb_build_object('role', h.role, 'tenant', h.tenant_id, 'project', h.project_id, 'expires', h.expires_at)) AS bindings,
      count(*) AS many,
      bool_or(h.project_id = of_project OR h.project_id IS NULL AND (h.tenant_id IS NULL OR h.tenant_id = of_tenant)) AS direct
    FROM (SELECT h.* FROM platform.held_by(p.id) h ORDER BY h.id LIMIT 101) h) b
  WHERE s.id = credential AND s.secret_hash = hash AND s.revoked_at IS NULL AND s.expires_at > now() AND b.direct AND b.many <= 100
$$;
-- +goose StatementEnd

-- For each of several who ask, by its number: an instance with its members, its last operation, that one's steps, and its
-- events, of which the newest has the number that stands in the instance's row. Of an instance with 1,000 members and more,
-- and of an operation with as many steps, none is proved, so that nobody waits long for another's.
-- +goose StatementBegin
CREATE FUNCTION platform.prove_instance(credentials text[], hashes bytea[], anchor bigint, wanted text[])
  RETURNS TABLE (n bigint, rights text, versions text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  RETURN QUERY SELECT q.n, r.rights, concat(i.xmin, ' ', (SELECT o.xmin FROM operation o WHERE o.id = i.last_operation_id), ' ', s.steps, ' ', m.members)
    FROM unnest(credentials, hashes, wanted) WITH ORDINALITY q(credential, hash, wanted, n)
    JOIN instance i ON i.id = q.wanted
    CROSS JOIN LATERAL platform.prove_rights(q.credential, q.hash, anchor, i.tenant_id, i.project_id) r
    CROSS JOIN LATERAL (SELECT string_agg(concat(l.id, '=', l.version), ' ' ORDER BY l.id) AS steps, count(*) AS many
      FROM (SELECT s.id, s.xmin AS version FROM operation_step s WHERE s.operation_id = i.last_operation_id LIMIT 1000) l) s
    CROSS JOIN LATERAL (SELECT string_agg(concat(l.id, '=', l.version), ' ' ORDER BY l.id) AS members, count(*) AS many
      FROM (SELECT m.id, m.xmin AS version FROM member m WHERE m.instance_id = i.id LIMIT 1000) l) m
    WHERE s.many < 1000 AND m.many < 1000;
END $$;
-- +goose StatementEnd

-- For each of several who ask, by its number: a page of a project's instances that a filter chooses, newest first, with their
-- last operations: those that have ended do not change without their instances, which the trigger below sees to, and of those
-- that have not there are few. Of 200 and more none is proved. The conditions are the list's own (service/instance,
-- chosenSQL); empty ones choose all, statuses are separated by commas.
-- +goose StatementBegin
CREATE FUNCTION platform.prove_instances(credentials text[], hashes bytea[], anchor bigint, projects text[], afters text[], mosts text[], statuses text[],
  apps text[], systems text[], parts text[]) RETURNS TABLE (n bigint, rights text, versions text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  -- No id is above the bound that stands for the newest.
  RETURN QUERY SELECT q.n, r.rights, md5(concat(l.listed, ';', g.going))
    FROM (SELECT u.n, u.credential, u.hash, u.project, coalesce(nullif(u.after, ''), repeat('z', 40)) AS after, u.most::int AS most,
        string_to_array(nullif(u.statuses, ''), ',') AS statuses, nullif(u.app, '') AS app, nullif(u.system, '')::boolean AS system, u.part
      FROM unnest(credentials, hashes, projects, afters, mosts, statuses, apps, systems, parts)
        WITH ORDINALITY u(credential, hash, project, after, most, statuses, app, system, part, n)) q
    JOIN project p ON p.id = q.project
    CROSS JOIN LATERAL platform.prove_rights(q.credential, q.hash, anchor, p.tenant_id, p.id) r
    CROSS JOIN LATERAL (SELECT string_agg(concat(e.id, '=', e.version), ' ') AS listed FROM (SELECT i.id, i.xmin AS version FROM instance i
      WHERE i.project_id = p.id AND i.id < q.after AND (q.statuses IS NULL OR i.status = ANY (q.statuses)) AND (q.app IS NULL OR i.app_slug = q.app)
        AND (q.system IS NULL OR i.system = q.system) AND (q.part = '' OR strpos(i.name, q.part) > 0)
      ORDER BY i.id DESC LIMIT q.most) e) l
    CROSS JOIN LATERAL (SELECT string_agg(concat(e.id, '=', e.version), ' ') AS going, count(*) AS many FROM (SELECT o.id, o.xmin AS version
      FROM operation o WHERE o.project_id = p.id AND o.ended_at IS NULL ORDER BY o.id LIMIT 200) e) g
    WHERE g.many < 200;
END $$;
-- +goose StatementEnd

-- An operation that has ended is what it is: who changes it nonetheless writes its instance's row again.
-- +goose StatementBegin
CREATE FUNCTION platform.touch_instance() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE instance SET revision = revision WHERE id = NEW.instance_id;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER touch_instance AFTER UPDATE ON operation FOR EACH ROW WHEN (OLD.ended_at IS NOT NULL AND NEW.instance_id IS NOT NULL)
  EXECUTE FUNCTION platform.touch_instance();

REVOKE ALL ON FUNCTION platform.held_by(text), platform.prove_rights(text, bytea, bigint, text, text),
  platform.prove_instance(text[], bytea[], bigint, text[]),
  platform.prove_instances(text[], bytea[], bigint, text[], text[], text[], text[], text[], text[], text[]), platform.touch_instance() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.prove_instance(text[], bytea[], bigint, text[]),
  platform.prove_instances(text[], bytea[], bigint, text[], text[], text[], text[], text[], text[], text[]) TO app_api, app_operator;
