-- +goose Up
-- A key that was good once is expired, and not unknown: its holder is told to get a new one.

-- Whose key it is, with what the account may use. The subject's kind is EXPIRED, and nothing else is returned, for a key that
-- has ended by its time; no row for one that is unknown, guessed, revoked, or of a deleted account. An exchanged key is a signed
-- token, which the process has verified; its key must still hold.
-- +goose StatementBegin
CREATE FUNCTION platform.enter_key(kind text, credential text, hash bytea)
  RETURNS TABLE (subject_kind text, subject_id text, subject_name text, tenant text, project text, allow jsonb, limits jsonb, expires timestamptz)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  RETURN QUERY SELECT 'SERVICE_ACCOUNT', a.id::text, a.name::text, a.tenant_id::text, a.project_id::text, a.permission_keys, a.limits, k.expires_at
    FROM service_account_key k JOIN service_account a ON a.id = k.service_account_id
    WHERE k.id = credential AND (kind = 'exchange' OR k.secret_hash = hash) AND k.revoked_at IS NULL AND a.deleted_at IS NULL
      AND (k.expires_at IS NULL OR k.expires_at > now());
  IF FOUND THEN
    UPDATE service_account_key SET last_used_at = date_trunc('minute', now()) WHERE id IN (
      SELECT id FROM service_account_key WHERE id = credential
        AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute') FOR UPDATE SKIP LOCKED);
    RETURN;
  END IF;
  RETURN QUERY SELECT 'EXPIRED', NULL::text, NULL::text, NULL::text, NULL::text, NULL::jsonb, NULL::jsonb, NULL::timestamptz
    FROM service_account_key k JOIN service_account a ON a.id = k.service_account_id
    WHERE k.id = credential AND (kind = 'exchange' OR k.secret_hash = hash) AND k.revoked_at IS NULL AND a.deleted_at IS NULL;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.enter_key(text, text, bytea) FROM PUBLIC;

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
    SELECT k.subject_kind, k.subject_id, k.subject_name, k.tenant, k.project, k.allow, k.limits, k.expires
      INTO subject_kind, subject_id, subject_name, tenant, project, allow, limits, expires
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

