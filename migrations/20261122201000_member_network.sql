-- +goose Up
-- modify "member" table
ALTER TABLE "member" ADD COLUMN "address" text NOT NULL DEFAULT '', ADD COLUMN "ranges" jsonb NULL;
-- create index "member_address_live" to table: "member"
CREATE UNIQUE INDEX "member_address_live" ON "member" ("address") WHERE ((address <> ''::text) AND ((status)::text <> 'REMOVED'::text));
-- create index "member_node_id" to table: "member"
CREATE INDEX "member_node_id" ON "member" ("node_id") WHERE ((status)::text <> 'REMOVED'::text);
