-- +goose Up
-- What holds of policy is read under a shared lock of each level, and written under that level's own lock, so
-- that nothing commits that rests on what a policy said before it was changed. The levels come widest first.
-- +goose StatementBegin
CREATE FUNCTION platform.policy_lock(place text, exclusive boolean) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF exclusive THEN
    PERFORM pg_advisory_xact_lock(7368556, hashtext(place));
  ELSE
    PERFORM pg_advisory_xact_lock_shared(7368556, hashtext(place));
  END IF;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION platform.policy_of(of_tenant text, of_project text) RETURNS TABLE (overlay_id text, overlay_scope text, overlay_document jsonb)
  LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM platform.policy_lock('', false);
  IF of_tenant <> '' THEN PERFORM platform.policy_lock(of_tenant, false); END IF;
  IF of_project <> '' THEN PERFORM platform.policy_lock(of_project, false); END IF;
  RETURN QUERY SELECT o.id, o.scope::text, o.document FROM policy_overlay o
    WHERE o.superseded_at IS NULL AND (o.tenant_id IS NULL
      OR (o.tenant_id = of_tenant AND o.project_id IS NULL) OR o.project_id = of_project)
    ORDER BY o.project_id IS NOT NULL, o.tenant_id IS NOT NULL;
END $$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION platform.policy_lock(text, boolean), platform.policy_of(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.policy_lock(text, boolean), platform.policy_of(text, text) TO app_api, app_operator, app_worker;
