-- +goose Up
-- What ties a node task to whoever requested it. Tasks from before have none.
ALTER TABLE "node_task" ADD COLUMN "correlation_id" text NOT NULL DEFAULT '';
