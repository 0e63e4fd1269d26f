-- +goose Up
-- The context of telemetry on what is stored: which trace wrote it, and the app and instance that it is about. An
-- operation's trace needs no column, since its id follows from the operation's. What the audit's chain seals stays as it
-- was: older builds seal too, and would not know of more.
ALTER TABLE "operation" ADD COLUMN "app_slug" text NOT NULL DEFAULT '';
ALTER TABLE "app_instance_event" ADD COLUMN "trace_id" text NOT NULL DEFAULT '';
ALTER TABLE "audit_entry" ADD COLUMN "trace_id" text NOT NULL DEFAULT '',
  ADD COLUMN "instance_id" text NULL, ADD COLUMN "app_slug" text NOT NULL DEFAULT '';
ALTER TABLE "node_task" ADD COLUMN "traceparent" text NOT NULL DEFAULT '', ADD COLUMN "app_slug" text NOT NULL DEFAULT '';
