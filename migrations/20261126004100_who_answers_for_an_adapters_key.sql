-- +goose Up
-- An adapter's token for an instance rests on the adapter's own account and key too: they act for as long as those who answer
-- for both may give adapter.act. What may be done stays the chosen account's alone. See docs/adr/0109.
DROP FUNCTION platform.enter_operator(text, text, text);
-- +goose StatementBegin
CREATE FUNCTION platform.enter_operator(wanted text, account text, via text,
  OUT subject_kind text, OUT subject_id text, OUT subject_name text, OUT tenant text, OUT project text,
  OUT bindings jsonb, OUT allow jsonb, OUT expires timestamptz, OUT limits jsonb, OUT own jsonb)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  SELECT 'SERVICE_ACCOUNT', a.id, a.name, a.tenant_id, a.project_id,
      CASE WHEN a.maker_id IS NOT NULL THEN jsonb_build_array(platform.voucher(a.maker_id, a.made_under)) END,
      a.permission_keys, k.expires_at, a.limits,
      jsonb_build_object('tenant', o.tenant_id, 'project', o.project_id, 'allow', o.permission_keys, 'by',
        jsonb_build_array(platform.voucher(o.maker_id, o.made_under), platform.voucher(k.maker_id, k.made_under)))
    INTO subject_kind, subject_id, subject_name, tenant, project, bindings, allow, expires, limits, own
    FROM instance i JOIN manifest m ON m.id = i.manifest_id JOIN adapter d ON d.name = m.adapter_name
      JOIN service_account o ON o.id = d.service_account_id AND o.deleted_at IS NULL
      JOIN service_account_key k ON k.id = via AND k.service_account_id = o.id
      JOIN service_account a ON a.id = i.operator_service_account_id AND a.deleted_at IS NULL
    WHERE i.id = wanted AND a.id = account AND i.released_at IS NULL
      AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now());
  IF NOT FOUND THEN PERFORM platform.set_scope('', NULL, NULL, NULL, NULL, NULL); RETURN; END IF;
  PERFORM platform.set_scope(subject_id, ARRAY[project], NULL, ARRAY[tenant], NULL, platform.attached_to(ARRAY[project]));
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.enter_operator(text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.enter_operator(text, text, text) TO app_api, app_operator;
