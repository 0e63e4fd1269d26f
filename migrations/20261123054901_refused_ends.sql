-- +goose Up
-- modify "operation" table
ALTER TABLE "operation" ADD COLUMN "end_refusal" jsonb NULL;
-- create index "operation_end_refused" to table: "operation"
CREATE INDEX "operation_end_refused" ON "operation" ("created_at") WHERE (end_refusal IS NOT NULL);
-- +goose Down
