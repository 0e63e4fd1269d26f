-- +goose Up
-- modify "operation" table
ALTER TABLE "operation" ADD COLUMN "step_plan" text NOT NULL DEFAULT '';
-- modify "worker_process" table
ALTER TABLE "worker_process" ADD COLUMN "kinds" jsonb NULL, ADD COLUMN "plans" jsonb NULL;
-- drop index "operation_due_by_project" from table: "operation"
DROP INDEX "operation_due_by_project";
-- create index "operation_due_by_project" to table: "operation"
CREATE INDEX "operation_due_by_project" ON "operation" ("tenant_id", "project_id", "next_run_at", "id", "kind", "step_plan") WHERE ((ended_at IS NULL) AND (claimed_by IS NULL));
-- +goose Down
