-- +goose Up
-- Runners whose reports the operators trust, what a version's steps need, and why that was set aside.
CREATE TABLE "evidence_runner" ("id" text NOT NULL, "name" text NOT NULL, "public_key" text NOT NULL, "created_by" text NOT NULL DEFAULT '', "revoked_at" timestamptz NULL, "revoke_reason" text NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
CREATE UNIQUE INDEX "evidence_runner_name_key" ON "evidence_runner" ("name");
CREATE UNIQUE INDEX "evidence_runner_public_key_key" ON "evidence_runner" ("public_key");
ALTER TABLE "app" ADD COLUMN "promotion_terms" jsonb NULL;
ALTER TABLE "promotion" ADD COLUMN "override" text NOT NULL DEFAULT '';
ALTER TABLE "promotion_evidence" ADD COLUMN "runner_id" text NOT NULL DEFAULT '';
DROP INDEX "promotionevidence_manifest_id_kind_digest";
CREATE UNIQUE INDEX "promotionevidence_manifest_id_kind_digest_runner_id" ON "promotion_evidence" ("manifest_id", "kind", "digest", "runner_id");

ALTER TABLE evidence_runner ENABLE ROW LEVEL SECURITY;
ALTER TABLE evidence_runner FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON evidence_runner TO app_owner USING (true) WITH CHECK (true);
CREATE POLICY operator_all ON evidence_runner TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_read ON evidence_runner FOR SELECT TO app_worker USING (true);
-- Public keys: a publisher reads whose reports count.
CREATE POLICY api_read ON evidence_runner FOR SELECT TO app_api USING (true);
GRANT SELECT ON evidence_runner TO app_api, app_worker;
GRANT SELECT, INSERT, UPDATE ON evidence_runner TO app_operator;
