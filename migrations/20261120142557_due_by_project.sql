-- +goose Up
-- create index "operation_due_by_project" to table: "operation"
CREATE INDEX "operation_due_by_project" ON "operation" ("tenant_id", "project_id", "next_run_at", "id") WHERE ((ended_at IS NULL) AND (claimed_by IS NULL));

-- +goose Down
-- reverse: create index "operation_due_by_project" to table: "operation"
DROP INDEX "operation_due_by_project";
