-- +goose Up
-- modify "instance" table
ALTER TABLE "instance" ADD COLUMN "repair" jsonb NULL, ADD COLUMN "repair_stopped" text NOT NULL DEFAULT '', ADD COLUMN "unserved_at" timestamptz NULL;
-- modify "member" table
ALTER TABLE "member" ADD COLUMN "failure" text NULL, ADD COLUMN "failed_at" timestamptz NULL, ADD COLUMN "restarts" bigint NOT NULL DEFAULT 0;
-- +goose Down
