-- +goose Up
-- One source of an owner answers for a location, of those that are switched on.
CREATE UNIQUE INDEX "artifact_source_platform_location" ON "artifact_source" ("location") WHERE ((disabled_at IS NULL) AND (tenant_id IS NULL));
CREATE UNIQUE INDEX "artifact_source_tenant_location" ON "artifact_source" ("tenant_id", "location") WHERE ((disabled_at IS NULL) AND (tenant_id IS NOT NULL));
