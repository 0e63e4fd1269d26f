-- +goose Up
-- Where artifacts come from, what they are made of and who signed them; evidence, stages and canaries; progress of node tasks.
ALTER TABLE "app" ADD COLUMN "publisher_tenant_id" text NULL, ADD COLUMN "publisher_project_id" text NULL;
DROP INDEX "artifact_digest_key";
ALTER TABLE "artifact" ADD COLUMN "kind" character varying NOT NULL DEFAULT 'IMAGE', ADD COLUMN "source_id" text NULL, ADD COLUMN "tenant_id" text NULL, ADD COLUMN "project_id" text NULL, ADD COLUMN "platforms" jsonb NULL, ADD COLUMN "signature" character varying NOT NULL DEFAULT 'NOT_CHECKED', ADD COLUMN "signer_key_id" text NULL, ADD COLUMN "quarantined_at" timestamptz NULL, ADD COLUMN "quarantine_code" text NOT NULL DEFAULT '', ADD COLUMN "quarantine_reason" text NOT NULL DEFAULT '', ADD COLUMN "verified_at" timestamptz NULL;
CREATE UNIQUE INDEX "artifact_platform_digest" ON "artifact" ("digest") WHERE tenant_id IS NULL;
CREATE UNIQUE INDEX "artifact_tenant_digest" ON "artifact" ("tenant_id", "digest") WHERE tenant_id IS NOT NULL;
CREATE INDEX "artifact_digest" ON "artifact" ("digest");
CREATE INDEX "artifact_source_id" ON "artifact" ("source_id");
CREATE UNIQUE INDEX "artifact_id_tenant_id" ON "artifact" ("id", "tenant_id");
ALTER TABLE "manifest" ADD COLUMN "artifact_kind" text NOT NULL DEFAULT 'controller', ADD COLUMN "canary_percent" bigint NOT NULL DEFAULT 0, ADD COLUMN "canary_started_at" timestamptz NULL, ADD COLUMN "canary_halted_at" timestamptz NULL, ADD COLUMN "canary_halt_reason" text NOT NULL DEFAULT '';
ALTER TABLE "node_task" ADD COLUMN "progress_done" bigint NOT NULL DEFAULT 0, ADD COLUMN "progress_total" bigint NOT NULL DEFAULT 0;
CREATE TABLE "artifact_part" ("id" text NOT NULL, "artifact_id" text NOT NULL, "tenant_id" text NULL, "position" bigint NOT NULL, "role" character varying NOT NULL, "digest" text NOT NULL, "media_type" text NOT NULL DEFAULT '', "size_bytes" bigint NOT NULL, "platform" text NOT NULL DEFAULT '', "title" text NOT NULL DEFAULT '', "parent" text NOT NULL DEFAULT '', PRIMARY KEY ("id"));
CREATE UNIQUE INDEX "artifactpart_artifact_id_position" ON "artifact_part" ("artifact_id", "position");
CREATE INDEX "artifactpart_artifact_id_digest" ON "artifact_part" ("artifact_id", "digest");
CREATE TABLE "artifact_source" ("id" text NOT NULL, "tenant_id" text NULL, "name" text NOT NULL, "kind" character varying NOT NULL, "location" text NOT NULL, "region" text NOT NULL DEFAULT '', "signature_policy" character varying NOT NULL DEFAULT 'REQUIRED', "credential_user" text NOT NULL DEFAULT '', "credential" bytea NULL, "keeper" text NOT NULL DEFAULT '', "credential_at" timestamptz NULL, "disabled_at" timestamptz NULL, "created_by" text NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
CREATE UNIQUE INDEX "artifactsource_id_tenant_id" ON "artifact_source" ("id", "tenant_id");
CREATE UNIQUE INDEX "artifact_source_platform_name" ON "artifact_source" ("name") WHERE tenant_id IS NULL;
CREATE UNIQUE INDEX "artifact_source_tenant_name" ON "artifact_source" ("tenant_id", "name") WHERE tenant_id IS NOT NULL;
CREATE TABLE "promotion" ("id" text NOT NULL, "object_id" text NOT NULL, "tenant_id" text NULL, "from_stage" character varying NOT NULL, "to_stage" character varying NOT NULL, "canary_percent" bigint NULL, "reason" text NOT NULL DEFAULT '', "actor_kind" text NOT NULL DEFAULT '', "actor_id" text NOT NULL DEFAULT '', "actor_name" text NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
CREATE INDEX "promotion_object_id_id" ON "promotion" ("object_id", "id");
CREATE TABLE "promotion_evidence" ("id" text NOT NULL, "manifest_id" text NOT NULL, "tenant_id" text NULL, "kind" character varying NOT NULL, "digest" text NOT NULL, "report" bytea NOT NULL, "summary" jsonb NULL, "passed" boolean NOT NULL, "submitted_by" text NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
CREATE UNIQUE INDEX "promotionevidence_manifest_id_kind_digest" ON "promotion_evidence" ("manifest_id", "kind", "digest");
CREATE TABLE "signer_key" ("id" text NOT NULL, "source_id" text NOT NULL, "tenant_id" text NULL, "name" text NOT NULL, "public_key" text NOT NULL, "fingerprint" text NOT NULL, "algorithm" text NOT NULL, "valid_from" timestamptz NOT NULL, "valid_until" timestamptz NULL, "revoked_at" timestamptz NULL, "revoke_reason" text NOT NULL DEFAULT '', "created_by" text NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
CREATE UNIQUE INDEX "signerkey_source_id_fingerprint" ON "signer_key" ("source_id", "fingerprint");
