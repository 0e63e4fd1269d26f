-- +goose Up
-- Whether what somebody has open rests on the same rights as when it was asked last: one statement says it of many callers,
-- where each of them was asked for by itself every three seconds. See ADR 0126.

-- As before, and of a caller by itself when no project is named, and as platform.enter has it of one without bindings.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.prove_rights(credential text, hash bytea, anchor bigint, of_tenant text, of_project text) RETURNS TABLE (rights text)
  LANGUAGE sql STABLE AS $$
  SELECT coalesce(
      (SELECT a.number || ' ' || extract(epoch FROM a.written_at) FROM platform.access_scope a
        WHERE a.number = anchor AND a.written_at > now() - interval '1 hour'),
      (SELECT a.number || ' ' || extract(epoch FROM a.written_at) FROM platform.access_scope a
        WHERE a.subject = p.id AND a.written_at > now() - interval '1 hour' ORDER BY a.number DESC LIMIT 1))
    || ' ' || encode(sha256(convert_to(concat(p.tenant_id, ' ', coalesce(b.bindings, '[]')), 'UTF8')), 'hex')
  FROM public.session s JOIN public.person p ON p.id = s.user_id AND p.disabled_at IS NULL
  CROSS JOIN LATERAL (SELECT jsonb_agg(jsonb_build_object('role', h.role, 'tenant', h.tenant_id, 'project', h.project_id, 'expires', h.expires_at)) AS bindings,
      count(*) AS many,
      bool_or(h.project_id = of_project OR h.project_id IS NULL AND (h.tenant_id IS NULL OR h.tenant_id = of_tenant)) AS direct
    FROM (SELECT h.* FROM platform.held_by(p.id) h ORDER BY h.id LIMIT 101) h) b
  WHERE s.id = credential AND s.secret_hash = hash AND s.revoked_at IS NULL AND s.expires_at > now() AND (of_project IS NULL OR b.direct) AND b.many <= 100
$$;

-- For each of several who ask, by its number: what it has rights by, and whether a project is there, where one is named.
CREATE FUNCTION platform.prove_callers(credentials text[], hashes bytea[], anchor bigint, wanted text[]) RETURNS TABLE (n bigint, rights text, versions text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  RETURN QUERY SELECT q.n, r.rights, CASE q.wanted WHEN '' THEN 'none' ELSE (SELECT 'there' FROM project p WHERE p.id = q.wanted AND p.deleted_at IS NULL) END
    FROM unnest(credentials, hashes, wanted) WITH ORDINALITY q(credential, hash, wanted, n)
    CROSS JOIN LATERAL platform.prove_rights(q.credential, q.hash, anchor, NULL, NULL) r;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.prove_callers(text[], bytea[], bigint, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.prove_callers(text[], bytea[], bigint, text[]) TO app_api, app_operator;
-- +goose Down
