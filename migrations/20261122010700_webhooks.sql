-- +goose Up
-- What a webhook may send is bounded when it is made, and what is due is found without a scan.
ALTER TABLE "webhook" ADD COLUMN "families" jsonb NOT NULL DEFAULT '[]';
ALTER TABLE "webhook" ALTER COLUMN "families" DROP DEFAULT;
CREATE INDEX "webhook_served" ON "webhook" ("project_id") WHERE deleted_at IS NULL AND status = 'ACTIVE';
CREATE INDEX "webhookdelivery_due" ON "webhook_delivery" ("webhook_id", "next_attempt_at") WHERE state = 'PENDING';
