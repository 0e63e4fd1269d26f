-- +goose Up
-- How a transaction learns who is calling. platform.enter looks a credential up, sets the scope
-- that the policies read, and answers who it is with the rows its rights come from: one call, in
-- the round trip of whatever is read or locked next.
-- +goose StatementBegin
CREATE FUNCTION platform.bindings_of(person_id text) RETURNS jsonb LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  SELECT coalesce(jsonb_agg(jsonb_build_object('role', role, 'tenant', tenant_id, 'project', project_id, 'expires', expires_at)), '[]')
  FROM (SELECT * FROM role_binding WHERE user_id = person_id AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > now()) ORDER BY id LIMIT 100000) b
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION platform.set_scope(subject text, projects text[], tenants text[], seen text[], node text) RETURNS void
  LANGUAGE sql VOLATILE AS $$
  SELECT set_config('app.subject', coalesce(subject, ''), true),
         set_config('app.projects', coalesce(array_to_string(projects, ','), ''), true),
         set_config('app.tenants', coalesce(array_to_string(tenants, ','), ''), true),
         set_config('app.seen_tenants', coalesce(array_to_string(seen, ','), ''), true),
         set_config('app.node', coalesce(node, ''), true)
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION platform.enter(kind text, credential text, hash bytea,
  OUT subject_kind text, OUT subject_id text, OUT subject_name text, OUT tenant text, OUT project text,
  OUT bindings jsonb, OUT allow jsonb, OUT expires timestamptz)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  projects text[]; tenants text[]; seen text[];
BEGIN
  CASE kind
  WHEN 'session' THEN
    SELECT 'USER', p.id, p.display_name, p.tenant_id, s.expires_at INTO subject_kind, subject_id, subject_name, tenant, expires
      FROM session s JOIN person p ON p.id = s.user_id
      WHERE s.id = credential AND s.secret_hash = hash AND s.revoked_at IS NULL AND s.expires_at > now();
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL); RETURN; END IF;
    bindings := platform.bindings_of(subject_id);
    SELECT array_agg(b ->> 'project') FILTER (WHERE b ->> 'project' IS NOT NULL),
           array_agg(b ->> 'tenant') FILTER (WHERE b ->> 'project' IS NULL AND b ->> 'tenant' IS NOT NULL),
           array_agg(b ->> 'tenant') FILTER (WHERE b ->> 'tenant' IS NOT NULL)
      INTO projects, tenants, seen FROM jsonb_array_elements(bindings) b;
    IF tenant IS NOT NULL THEN seen := array_append(seen, tenant); END IF;
    PERFORM platform.set_scope(subject_id, projects, tenants, seen, NULL);
  WHEN 'key' THEN
    SELECT 'SERVICE_ACCOUNT', a.id, a.name, a.tenant_id, a.project_id, a.permission_keys, k.expires_at
      INTO subject_kind, subject_id, subject_name, tenant, project, allow, expires
      FROM service_account_key k JOIN service_account a ON a.id = k.service_account_id
      WHERE k.id = credential AND k.secret_hash = hash AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now());
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL); RETURN; END IF;
    UPDATE service_account_key SET last_used_at = date_trunc('minute', now()) WHERE id IN (
      SELECT id FROM service_account_key WHERE id = credential
        AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute') FOR UPDATE SKIP LOCKED);
    PERFORM platform.set_scope(subject_id, ARRAY[project], NULL, ARRAY[tenant], NULL);
  WHEN 'operation' THEN
    SELECT 'OPERATION', o.id, o.kind, o.tenant_id, o.project_id INTO subject_kind, subject_id, subject_name, tenant, project
      FROM operation o WHERE o.id = credential AND o.ended_at IS NULL;
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL); RETURN; END IF;
    PERFORM platform.set_scope(subject_id, ARRAY[project], NULL, ARRAY[tenant], NULL);
  WHEN 'instance' THEN
    SELECT 'OPERATION', i.id, i.name, i.tenant_id, i.project_id INTO subject_kind, subject_id, subject_name, tenant, project
      FROM instance i WHERE i.id = credential AND i.released_at IS NULL;
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL); RETURN; END IF;
    PERFORM platform.set_scope(subject_id, ARRAY[project], NULL, ARRAY[tenant], NULL);
  WHEN 'node' THEN
    SELECT 'NODE', n.id, n.name, c.expires_at INTO subject_kind, subject_id, subject_name, expires
      FROM node_credential c JOIN compute_node n ON n.id = c.node_id
      WHERE c.id = credential AND c.secret_hash = hash AND c.revoked_at IS NULL AND c.expires_at > now() AND n.status <> 'RETIRED';
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL); RETURN; END IF;
    UPDATE node_credential SET first_used_at = now() WHERE id = credential AND first_used_at IS NULL;
    IF FOUND THEN
      UPDATE node_credential SET revoked_at = now()
        WHERE node_id = subject_id AND id < credential AND revoked_at IS NULL;
    END IF;
    PERFORM platform.set_scope(subject_id, NULL, NULL, NULL, subject_id);
  WHEN 'enrolment' THEN
    SELECT 'ENROLMENT', e.id, e.name, e.expires_at, e.node_id INTO subject_kind, subject_id, subject_name, expires, project
      FROM node_enrolment e WHERE e.id = credential AND e.secret_hash = hash AND e.used_at IS NULL AND e.expires_at > now();
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL); RETURN; END IF;
    PERFORM platform.set_scope(subject_id, NULL, NULL, NULL, project);
  ELSE
    PERFORM platform.set_scope('', NULL, NULL, NULL, NULL);
  END CASE;
END $$;
-- +goose StatementEnd

-- A one-time login becomes a session: the code is spent in the same statement that finds it.
-- +goose StatementBegin
CREATE FUNCTION platform.redeem_login(code_id text, code_hash bytea, session_id text, session_hash bytea, ends timestamptz)
  RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE who text;
BEGIN
  UPDATE login_code SET used_at = now()
    WHERE id = code_id AND secret_hash = code_hash AND used_at IS NULL AND expires_at > now() RETURNING user_id INTO who;
  IF who IS NULL THEN RETURN NULL; END IF;
  INSERT INTO session (id, user_id, secret_hash, expires_at, created_at) VALUES (session_id, who, session_hash, ends, now());
  RETURN who;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION platform.end_session(session_id text, session_hash bytea) RETURNS boolean
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE session SET revoked_at = now() WHERE id = session_id AND secret_hash = session_hash AND revoked_at IS NULL;
  RETURN FOUND;
END $$;
-- +goose StatementEnd

-- The node that a new allocation gets: locked, so that two requests never count the same GPUs.
-- Whole nodes must be free of any allocation; slices go to the fullest node that still has room,
-- which keeps whole nodes whole.
-- +goose StatementBegin
CREATE FUNCTION platform.pick_node(wanted_shape text, wanted_gpus bigint, wanted_sku text, wanted_region text)
  RETURNS TABLE (node_id text, node_gpus bigint, node_region text, node_sku text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE candidate record; used bigint; whole boolean;
BEGIN
  FOR candidate IN
    SELECT n.id, n.gpus, n.region, n.sku FROM compute_node n
    LEFT JOIN LATERAL (SELECT coalesce(sum(a.gpu_count), 0) AS used, count(*) AS held FROM allocation a
      WHERE a.node_id = n.id AND a.released_at IS NULL) h ON true
    WHERE n.status = 'ONLINE' AND (wanted_sku = '' OR n.sku = wanted_sku) AND (wanted_region = '' OR n.region = wanted_region)
      AND CASE WHEN wanted_shape = 'BAREMETAL' THEN h.held = 0 ELSE n.gpus - h.used >= wanted_gpus END
    ORDER BY CASE WHEN wanted_shape = 'BAREMETAL' THEN 0 ELSE n.gpus - h.used END, n.name
    LIMIT 100
  LOOP
    PERFORM FROM compute_node n WHERE n.id = candidate.id AND n.status = 'ONLINE' FOR UPDATE;
    CONTINUE WHEN NOT FOUND;
    SELECT coalesce(sum(a.gpu_count), 0), bool_or(a.shape = 'BAREMETAL') INTO used, whole
      FROM allocation a WHERE a.node_id = candidate.id AND a.released_at IS NULL;
    IF wanted_shape = 'BAREMETAL' THEN
      CONTINUE WHEN whole IS NOT NULL;
    ELSE
      CONTINUE WHEN coalesce(whole, false) OR candidate.gpus - used < wanted_gpus;
    END IF;
    RETURN QUERY SELECT candidate.id, candidate.gpus::bigint, candidate.region, candidate.sku;
    RETURN;
  END LOOP;
END $$;
-- +goose StatementEnd

-- A launch holds its manifest against promotion until it commits; callers may not lock the row.
-- +goose StatementBegin
CREATE FUNCTION platform.hold_manifest(wanted text) RETURNS text
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT stage FROM manifest WHERE id = wanted FOR SHARE
$$;
-- +goose StatementEnd

-- A node's report wakes the operation that waits for it, though the node may not see the operation.
-- +goose StatementBegin
CREATE FUNCTION platform.wake_operation(operation_id text) RETURNS void
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE operation SET next_run_at = now() WHERE id = operation_id AND ended_at IS NULL AND next_run_at > now()
$$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION platform.bindings_of(text), platform.enter(text, text, bytea),
  platform.redeem_login(text, bytea, text, bytea, timestamptz), platform.end_session(text, bytea),
  platform.pick_node(text, bigint, text, text), platform.wake_operation(text), platform.hold_manifest(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.hold_manifest(text) TO app_api, app_operator;
GRANT EXECUTE ON FUNCTION platform.enter(text, text, bytea) TO app_api, app_operator, app_node;
GRANT EXECUTE ON FUNCTION platform.redeem_login(text, bytea, text, bytea, timestamptz), platform.end_session(text, bytea) TO app_api;
GRANT EXECUTE ON FUNCTION platform.pick_node(text, bigint, text, text) TO app_api, app_operator;
GRANT EXECUTE ON FUNCTION platform.wake_operation(text) TO app_api, app_operator, app_node, app_worker;
