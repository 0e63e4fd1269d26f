-- +goose Up
-- modify "worker_process" table
ALTER TABLE "worker_process" ADD COLUMN "busy_adapters" jsonb NULL;
-- drop index "operation_due_by_project" from table: "operation"
DROP INDEX "operation_due_by_project";
-- create index "operation_due_by_adapter" to table: "operation"
CREATE INDEX "operation_due_by_adapter" ON "operation" ("adapter_name", "tenant_id", "project_id", "next_run_at", "id", "kind", "step_plan") WHERE ((ended_at IS NULL) AND (claimed_by IS NULL));
-- Whether operations wait for an adapter in a worker that is heard: it has the most calls that one may have, or does not
-- answer.
-- +goose StatementBegin
CREATE FUNCTION platform.adapter_busy(wanted text) RETURNS boolean
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT EXISTS (SELECT FROM worker_process WHERE heartbeat_at > now() - interval '10 seconds' AND busy_adapters ? wanted)
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.adapter_busy(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.adapter_busy(text) TO app_api, app_operator;
-- +goose Down
