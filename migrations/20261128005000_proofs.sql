-- +goose Up
-- An answer that the API keeps is shown again only to whom the same rights give it, and only where the rows that it was made
-- from are the same as then. A proof says which they are: rights by what they give, as platform.enter answers them, and of a
-- row the transaction that wrote it. A number of a transaction does not come back within an hour, and never where nothing was
-- lost: a proof names a row of platform.access_scope, the anchor, that is no older than that, and gone after a crash and on
-- another server. See docs/adr/0126.

-- What gives a person rights to a project, by a session that holds: null for whoever has none of its own there, and for
-- anything else that a caller may show. What somebody sees through a share is not proved. The anchor is the one named, for as
-- long as it is there, or else the person's own.
-- +goose StatementBegin
CREATE FUNCTION platform.prove_rights(credential text, hash bytea, anchor bigint, of_tenant text, of_project text) RETURNS text
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  person text;
  own_tenant text;
  bindings jsonb;
  direct boolean;
  anchored text;
BEGIN
  SELECT p.id, p.tenant_id INTO person, own_tenant FROM session s JOIN person p ON p.id = s.user_id
    WHERE s.id = credential AND s.secret_hash = hash AND s.revoked_at IS NULL AND s.expires_at > now() AND p.disabled_at IS NULL;
  IF NOT FOUND THEN RETURN NULL; END IF;
  bindings := platform.bindings_of(person);
  IF jsonb_array_length(bindings) > 100 THEN RETURN NULL; END IF;
  SELECT bool_or(b ->> 'project' = of_project OR b ->> 'project' IS NULL AND (b ->> 'tenant' IS NULL OR b ->> 'tenant' = of_tenant))
    INTO direct FROM jsonb_array_elements(bindings) b;
  IF direct IS NOT TRUE THEN RETURN NULL; END IF;
  anchored := (SELECT a.number || ' ' || extract(epoch FROM a.written_at) FROM platform.access_scope a
    WHERE a.number = anchor AND a.written_at > now() - interval '1 hour');
  IF anchored IS NULL THEN
    anchored := (SELECT a.number || ' ' || extract(epoch FROM a.written_at) FROM platform.access_scope a
      WHERE a.subject = person AND a.written_at > now() - interval '1 hour' ORDER BY a.number DESC LIMIT 1);
  END IF;
  RETURN anchored || ' ' || encode(sha256(convert_to(concat(own_tenant, ' ', bindings), 'UTF8')), 'hex');
END $$;
-- +goose StatementEnd

-- An instance with its members, its last operation, that one's steps, and its events, of which the newest has the number
-- that stands in the instance's row.
-- +goose StatementBegin
CREATE FUNCTION platform.prove_instance(credential text, hash bytea, anchor bigint, wanted text, OUT rights text, OUT versions text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  own record;
BEGIN
  SELECT i.tenant_id, i.project_id, i.last_operation_id, i.xmin::text AS version INTO own FROM instance i WHERE i.id = wanted;
  IF NOT FOUND THEN RETURN; END IF;
  rights := platform.prove_rights(credential, hash, anchor, own.tenant_id, own.project_id);
  IF rights IS NULL THEN RETURN; END IF;
  versions := concat(own.version, ' ', (SELECT o.xmin FROM operation o WHERE o.id = own.last_operation_id), ' ',
    (SELECT string_agg(concat(s.id, '=', s.xmin), ' ' ORDER BY s.id) FROM operation_step s WHERE s.operation_id = own.last_operation_id), ' ',
    (SELECT string_agg(concat(m.id, '=', m.xmin), ' ' ORDER BY m.id) FROM member m WHERE m.instance_id = wanted));
END $$;
-- +goose StatementEnd

-- A page of a project's instances that a filter chooses, newest first, with their last operations: those that have ended do
-- not change without their instances, which the trigger below sees to, and of those that have not there are few. Of 200 and
-- more none is proved. The conditions are the list's own (service/instance, chosenSQL); null chooses all.
-- +goose StatementBegin
CREATE FUNCTION platform.prove_instances(credential text, hash bytea, anchor bigint, of_project text, after text, most int, of_statuses text[], of_app text,
  of_system boolean, part_of_name text, OUT rights text, OUT versions text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  of_tenant text;
  listed text;
  going text;
  count_going int;
BEGIN
  SELECT p.tenant_id INTO of_tenant FROM project p WHERE p.id = of_project;
  IF NOT FOUND THEN RETURN; END IF;
  rights := platform.prove_rights(credential, hash, anchor, of_tenant, of_project);
  IF rights IS NULL THEN RETURN; END IF;
  -- No id is above the bound that stands for the newest.
  listed := (SELECT string_agg(concat(l.id, '=', l.version), ' ') FROM (SELECT i.id, i.xmin AS version FROM instance i
    WHERE i.project_id = of_project AND i.id < coalesce(nullif(after, ''), repeat('z', 40))
      AND (of_statuses IS NULL OR i.status = ANY (of_statuses)) AND (of_app IS NULL OR i.app_slug = of_app)
      AND (of_system IS NULL OR i.system = of_system) AND (part_of_name IS NULL OR strpos(i.name, part_of_name) > 0)
    ORDER BY i.id DESC LIMIT most) l);
  SELECT string_agg(concat(g.id, '=', g.version), ' '), count(*) INTO going, count_going FROM (SELECT o.id, o.xmin AS version FROM operation o
    WHERE o.project_id = of_project AND o.ended_at IS NULL ORDER BY o.id LIMIT 200) g;
  IF count_going >= 200 THEN rights := NULL; RETURN; END IF;
  versions := md5(concat(listed, ';', going));
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

REVOKE ALL ON FUNCTION platform.prove_rights(text, bytea, bigint, text, text), platform.prove_instance(text, bytea, bigint, text),
  platform.prove_instances(text, bytea, bigint, text, text, int, text[], text, boolean, text), platform.touch_instance() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.prove_instance(text, bytea, bigint, text), platform.prove_instances(text, bytea, bigint, text, text, int, text[], text, boolean, text)
  TO app_api, app_operator;
