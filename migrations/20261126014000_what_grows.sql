-- +goose Up
-- Statements that looked at all that there ever was, for the few rows that are alive: each has an index of those alone.
CREATE INDEX "instance_running" ON "instance" ("id") WHERE (((status)::text = 'RUNNING'::text) AND (released_at IS NULL));
CREATE INDEX "allocation_requested" ON "allocation" ("id") WHERE ((status)::text = 'REQUESTED'::text);
CREATE INDEX "allocation_brought" ON "allocation" ("id") WHERE (((status)::text = 'READY'::text) AND (created_by_operation_id IS NOT NULL));
CREATE INDEX "allocation_held_by_project" ON "allocation" ("project_id", "id") WHERE ((status)::text <> 'RELEASED'::text);
CREATE INDEX "operation_open_by_project" ON "operation" ("project_id", "id") WHERE (ended_at IS NULL);

-- A project's feed is read family by family, so that a reader of a rare family passes over nobody else's events.
-- platform.kept still finds one event by it, among its project's entries: only cursors of an earlier generation ask for that.
CREATE INDEX "event_feed" ON "app_instance_event" ("project_id", "permission_family", "generation", "xid", "position");
DROP INDEX "event_project_id_generation_xid_position";
