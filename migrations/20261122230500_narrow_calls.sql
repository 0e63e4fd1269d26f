-- +goose Up
ALTER TABLE "adapter" ADD COLUMN "narrow_calls" boolean NOT NULL DEFAULT false;
