-- +goose Up
-- The apps of the operations that were there before the column: a migration of its own, so that the locks of whole tables
-- that new columns take do not last as long as this.
UPDATE "operation" SET "app_slug" = i."app_slug" FROM "instance" i WHERE i."id" = "operation"."instance_id";
