-- +goose Up
-- Members are read by <family>.node.read on every way to them, Instance.members too, which <family>.instance.read
-- sufficed for until now. Accounts that hold that key keep what they could read.
UPDATE service_account SET permission_keys = (SELECT jsonb_agg(DISTINCT key ORDER BY key) FROM (
    SELECT jsonb_array_elements_text(permission_keys) UNION
    SELECT replace(held, '.instance.read', '.node.read') FROM jsonb_array_elements_text(permission_keys) AS held
      WHERE held IN ('apps.instance.read', 'scheduler.instance.read')) AS kept (key))
  WHERE permission_keys ?| ARRAY['apps.instance.read', 'scheduler.instance.read'];
