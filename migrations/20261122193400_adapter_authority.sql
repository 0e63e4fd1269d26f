-- +goose Up
-- modify "adapter" table
ALTER TABLE "adapter" ADD COLUMN "authority" text NOT NULL DEFAULT '';
