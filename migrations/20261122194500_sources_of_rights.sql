-- +goose Up
-- What somebody has made rests on their rights: it is asked at each use what they may still give.
ALTER TABLE "service_account" ADD COLUMN "maker_id" text NULL, ADD COLUMN "made_under" text NULL;
ALTER TABLE "service_account_key" ADD COLUMN "maker_id" text NULL, ADD COLUMN "made_under" text NULL;
ALTER TABLE "role_binding" ADD COLUMN "made_under" text NULL;
ALTER TABLE "webhook" ADD COLUMN "maker_id" text NULL, ADD COLUMN "made_under" text NULL;
GRANT SELECT (maker_id, made_under) ON service_account_key TO app_api, app_operator;

-- Whether a break-glass binding still holds; none is no condition.
-- +goose StatementBegin
CREATE FUNCTION platform.still_given(binding text) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  SELECT binding IS NULL OR EXISTS (SELECT FROM role_binding b WHERE b.id = binding AND b.revoked_at IS NULL
    AND (b.expires_at IS NULL OR b.expires_at > now()))
$$;
-- +goose StatementEnd

-- A role that was given under break-glass ends with it.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.bindings_of(person_id text) RETURNS jsonb LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  SELECT coalesce(jsonb_agg(jsonb_build_object('role', role, 'tenant', tenant_id, 'project', project_id, 'expires', expires_at)), '[]')
  FROM (SELECT * FROM role_binding WHERE user_id = person_id AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > now()) AND (made_under IS NULL OR platform.still_given(made_under)) ORDER BY id LIMIT 100000) b
$$;
-- +goose StatementEnd

-- What somebody may give at this moment, for what they have made: a person's bindings, or the keys of a service account with
-- those who answer for it. NULL where nobody is known to, which binds nothing; nothing at all once the person is disabled, the
-- account deleted, or the break-glass binding over.
-- +goose StatementBegin
CREATE FUNCTION platform.voucher(maker text, under text) RETURNS jsonb LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
DECLARE found jsonb;
BEGIN
  IF maker IS NULL THEN RETURN NULL; END IF;
  IF NOT platform.still_given(under) THEN RETURN jsonb_build_object('bindings', '[]'::jsonb); END IF;
  IF starts_with(maker, 'sa_') THEN
    SELECT jsonb_build_object('allow', a.permission_keys, 'by', platform.voucher(a.maker_id, a.made_under), 'project', a.project_id, 'tenant', a.tenant_id)
      INTO found FROM service_account a WHERE a.id = maker AND a.deleted_at IS NULL;
  ELSE
    SELECT jsonb_build_object('bindings', platform.bindings_of(p.id)) INTO found FROM person p WHERE p.id = maker AND p.disabled_at IS NULL;
  END IF;
  RETURN coalesce(found, jsonb_build_object('bindings', '[]'::jsonb));
END $$;
-- +goose StatementEnd

-- Who answers for a service account, to who reaches its project.
-- +goose StatementBegin
CREATE FUNCTION platform.account_voucher(wanted text) RETURNS jsonb LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  SELECT platform.voucher(a.maker_id, a.made_under) FROM service_account a WHERE a.id = wanted AND (session_user <> 'app_api'
    OR a.project_id = ANY (platform.scope('app.projects')) OR a.tenant_id = ANY (platform.scope('app.tenants')))
$$;
-- +goose StatementEnd

-- Whose key it is, with what the account may use and those who answer for account and key. The subject's kind is EXPIRED, and
-- nothing else is returned, for a key that has ended by its time; no row for one that is unknown, guessed, revoked, or of a
-- deleted account.
DROP FUNCTION platform.enter_key(text, text, bytea);
-- +goose StatementBegin
CREATE FUNCTION platform.enter_key(kind text, credential text, hash bytea)
  RETURNS TABLE (subject_kind text, subject_id text, subject_name text, tenant text, project text, vouchers jsonb, allow jsonb, limits jsonb,
    expires timestamptz)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  RETURN QUERY SELECT 'SERVICE_ACCOUNT', a.id::text, a.name::text, a.tenant_id::text, a.project_id::text,
      CASE WHEN a.maker_id IS NOT NULL OR k.maker_id IS NOT NULL THEN
        jsonb_build_array(platform.voucher(a.maker_id, a.made_under), platform.voucher(k.maker_id, k.made_under)) END,
      a.permission_keys, a.limits, k.expires_at
    FROM service_account_key k JOIN service_account a ON a.id = k.service_account_id
    WHERE k.id = credential AND (kind = 'exchange' OR k.secret_hash = hash) AND k.revoked_at IS NULL AND a.deleted_at IS NULL
      AND (k.expires_at IS NULL OR k.expires_at > now());
  IF FOUND THEN
    UPDATE service_account_key SET last_used_at = date_trunc('minute', now()) WHERE id IN (
      SELECT id FROM service_account_key WHERE id = credential
        AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute') FOR UPDATE SKIP LOCKED);
    RETURN;
  END IF;
  RETURN QUERY SELECT 'EXPIRED', NULL::text, NULL::text, NULL::text, NULL::text, NULL::jsonb, NULL::jsonb, NULL::jsonb, NULL::timestamptz
    FROM service_account_key k JOIN service_account a ON a.id = k.service_account_id
    WHERE k.id = credential AND (kind = 'exchange' OR k.secret_hash = hash) AND k.revoked_at IS NULL AND a.deleted_at IS NULL;
END $$;
-- +goose StatementEnd


-- A service account enters with those who answer for it, in the place of bindings.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.enter(kind text, credential text, hash bytea,
  OUT subject_kind text, OUT subject_id text, OUT subject_name text, OUT tenant text, OUT project text,
  OUT bindings jsonb, OUT allow jsonb, OUT expires timestamptz, OUT limits jsonb)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  projects text[]; tenants text[]; seen text[];
BEGIN
  CASE kind
  WHEN 'session' THEN
    SELECT 'USER', p.id, p.display_name, p.tenant_id, s.expires_at INTO subject_kind, subject_id, subject_name, tenant, expires
      FROM session s JOIN person p ON p.id = s.user_id
      WHERE s.id = credential AND s.secret_hash = hash AND s.revoked_at IS NULL AND s.expires_at > now()
        AND p.disabled_at IS NULL;
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN; END IF;
    bindings := platform.bindings_of(subject_id);
    SELECT array_agg(b ->> 'project') FILTER (WHERE b ->> 'project' IS NOT NULL),
           array_agg(b ->> 'tenant') FILTER (WHERE b ->> 'project' IS NULL AND b ->> 'tenant' IS NOT NULL),
           array_agg(b ->> 'tenant') FILTER (WHERE b ->> 'tenant' IS NOT NULL)
      INTO projects, tenants, seen FROM jsonb_array_elements(bindings) b;
    IF tenant IS NOT NULL THEN seen := array_append(seen, tenant); END IF;
    PERFORM platform.set_scope(subject_id, projects, tenants, seen, NULL, platform.attached_to(projects));
  WHEN 'key', 'exchange' THEN
    SELECT k.subject_kind, k.subject_id, k.subject_name, k.tenant, k.project, k.vouchers, k.allow, k.limits, k.expires
      INTO subject_kind, subject_id, subject_name, tenant, project, bindings, allow, limits, expires
      FROM platform.enter_key(kind, credential, hash) k;
    IF subject_kind IS DISTINCT FROM 'SERVICE_ACCOUNT' THEN
      PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN;
    END IF;
    PERFORM platform.set_scope(subject_id, ARRAY[project], NULL, ARRAY[tenant], NULL, platform.attached_to(ARRAY[project]));
  WHEN 'operation' THEN
    SELECT 'OPERATION', o.id, o.kind, o.tenant_id, o.project_id INTO subject_kind, subject_id, subject_name, tenant, project
      FROM operation o WHERE o.id = credential AND o.ended_at IS NULL;
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN; END IF;
    PERFORM platform.set_scope(subject_id, ARRAY[project], NULL, ARRAY[tenant], NULL, NULL);
  WHEN 'instance' THEN
    SELECT 'OPERATION', i.id, i.name, i.tenant_id, i.project_id INTO subject_kind, subject_id, subject_name, tenant, project
      FROM instance i WHERE i.id = credential AND i.released_at IS NULL;
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN; END IF;
    PERFORM platform.set_scope(subject_id, ARRAY[project], NULL, ARRAY[tenant], NULL, NULL);
  WHEN 'node' THEN
    SELECT 'NODE', n.id, n.name, c.expires_at INTO subject_kind, subject_id, subject_name, expires
      FROM node_credential c JOIN compute_node n ON n.id = c.node_id
      WHERE c.id = credential AND c.secret_hash = hash AND c.revoked_at IS NULL AND c.expires_at > now() AND n.status <> 'RETIRED';
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN; END IF;
    UPDATE node_credential SET first_used_at = now() WHERE id = credential AND first_used_at IS NULL;
    IF FOUND THEN
      UPDATE node_credential SET revoked_at = now()
        WHERE node_id = subject_id AND id < credential AND revoked_at IS NULL;
    END IF;
    PERFORM platform.set_scope(subject_id, NULL, NULL, NULL, subject_id, NULL);
  WHEN 'enrolment' THEN
    SELECT 'ENROLMENT', e.id, e.name, e.expires_at, e.node_id INTO subject_kind, subject_id, subject_name, expires, project
      FROM node_enrolment e WHERE e.id = credential AND e.secret_hash = hash AND e.used_at IS NULL AND e.expires_at > now();
    IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN; END IF;
    PERFORM platform.set_scope(subject_id, NULL, NULL, NULL, project, NULL);
  ELSE
    PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL);
  END CASE;
END $$;
-- +goose StatementEnd


-- A role that ended with the break-glass binding that it was given under is explained as one that was taken away.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.bindings_explained(person text, tenant text, project text, sees_tenant boolean, everywhere boolean)
  RETURNS TABLE (id text, role text, tenant_id text, project_id text, expires_at timestamptz, revoked_at timestamptz, break_glass boolean)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT b.id, b.role, b.tenant_id, b.project_id, b.expires_at,
    CASE WHEN b.revoked_at IS NULL AND NOT platform.still_given(b.made_under) THEN now() ELSE b.revoked_at END, b.break_glass FROM role_binding b
  WHERE b.user_id = person
    AND (session_user = 'app_operator' OR person = (platform.scope('app.subject'))[1]
      OR NOT everywhere AND tenant = ANY (platform.scope('app.seen_tenants')))
    AND (everywhere OR b.tenant_id IS NULL
      OR b.tenant_id = tenant AND (b.project_id IS NULL OR b.project_id = project OR sees_tenant))
    AND coalesce(b.revoked_at, b.expires_at, now()) > now() - interval '90 days'
  ORDER BY b.revoked_at IS NOT NULL, b.id DESC LIMIT 100000
$$;
-- +goose StatementEnd


-- What was made under a break-glass binding, to who reaches the binding: newest first, at most 200.
-- +goose StatementBegin
CREATE FUNCTION platform.made_under(wanted text)
  RETURNS TABLE (kind text, id text, name text, project_id text, created_at timestamptz, ended boolean)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH source AS (SELECT b.* FROM role_binding b WHERE b.id = wanted AND (session_user <> 'app_api'
      OR b.project_id = ANY (platform.scope('app.projects')) OR b.tenant_id = ANY (platform.scope('app.tenants'))))
  SELECT * FROM (
    SELECT 'SERVICE_ACCOUNT', a.id, a.name, a.project_id, a.created_at, a.deleted_at IS NOT NULL OR NOT platform.still_given(a.made_under)
      FROM source s JOIN service_account a ON a.made_under = s.id
    UNION ALL SELECT 'SERVICE_ACCOUNT_KEY', k.id, a.name, k.project_id, k.created_at, k.revoked_at IS NOT NULL OR coalesce(k.expires_at <= now(), false)
        OR a.deleted_at IS NOT NULL OR NOT platform.still_given(k.made_under)
      FROM source s JOIN service_account_key k ON k.made_under = s.id JOIN service_account a ON a.id = k.service_account_id
    UNION ALL SELECT 'WEBHOOK', w.id, w.description, w.project_id, w.created_at, w.deleted_at IS NOT NULL OR NOT platform.still_given(w.made_under)
      FROM source s JOIN webhook w ON w.made_under = s.id
    UNION ALL SELECT 'ROLE_BINDING', b.id, b.role, b.project_id, b.created_at, b.revoked_at IS NOT NULL OR coalesce(b.expires_at <= now(), false)
        OR NOT platform.still_given(b.made_under)
      FROM source s JOIN role_binding b ON b.made_under = s.id
  ) x (kind, id, name, project_id, created_at, ended) ORDER BY x.created_at DESC, x.id LIMIT 200
$$;
-- +goose StatementEnd

-- Whether a node's credential still lets it in, or any of the node's when none is named. A delivery ends with it.
-- +goose StatementBegin
CREATE FUNCTION platform.node_enters(node text, credential text) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  SELECT EXISTS (SELECT FROM node_credential c WHERE c.node_id = node AND (credential = '' OR c.id = credential)
    AND c.revoked_at IS NULL AND c.expires_at > now())
$$;
-- +goose StatementEnd

-- The short name of a tenant, by which its part of the platform's sources is known.
-- +goose StatementBegin
CREATE FUNCTION platform.slug_of(wanted text) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$ SELECT slug FROM tenant WHERE id = wanted $$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION platform.node_enters(text, text), platform.slug_of(text), platform.still_given(text), platform.voucher(text, text), platform.account_voucher(text),
  platform.enter_key(text, text, bytea), platform.made_under(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.account_voucher(text), platform.made_under(text) TO app_api, app_operator;
GRANT EXECUTE ON FUNCTION platform.voucher(text, text), platform.node_enters(text, text), platform.slug_of(text) TO app_worker;
