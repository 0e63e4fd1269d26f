-- +goose Up
-- modify "instance" table
ALTER TABLE "instance" ADD COLUMN "repair" jsonb NULL, ADD COLUMN "repair_stopped" text NOT NULL DEFAULT '', ADD COLUMN "unserved_at" timestamptz NULL;
-- modify "member" table
ALTER TABLE "member" ADD COLUMN "failure" text NULL, ADD COLUMN "failed_at" timestamptz NULL, ADD COLUMN "restarts" bigint NOT NULL DEFAULT 0;
-- Workers replace lost members: they lock the project while its quota is counted, and read the prices of what they place. The column
-- is granted for the lock alone; nobody writes it.
GRANT UPDATE (created_at) ON project TO app_worker;
GRANT SELECT ON sku_price TO app_worker;
GRANT EXECUTE ON FUNCTION platform.pick_node(text, bigint, text, text, text[], text[], text[], text[], text[], boolean, text),
	platform.any_walls(text[], boolean, text) TO app_worker;
CREATE POLICY worker_read ON sku_price FOR SELECT TO app_worker USING (true);
-- +goose Down
