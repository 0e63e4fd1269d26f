-- +goose Up
-- create index "idempotency_created_at" to table: "idempotency"
CREATE INDEX "idempotency_created_at" ON "idempotency" ("created_at");
-- Idempotency keys are remembered for 30 days: longer than anybody repeats a call, and short enough
-- that stored answers do not pile up. The workers may not see the table, so a function does it for
-- them; it answers how many rows went, at most 5,000 at once.
-- +goose StatementBegin
CREATE FUNCTION platform.forget_keys() RETURNS bigint
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH gone AS (
    DELETE FROM idempotency WHERE id IN (
      SELECT id FROM idempotency WHERE created_at < now() - interval '30 days' ORDER BY created_at LIMIT 5000) RETURNING id
  )
  SELECT count(*) FROM gone
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.forget_keys() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.forget_keys() TO app_worker;
