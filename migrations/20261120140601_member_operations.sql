-- +goose Up
-- modify "allocation" table
ALTER TABLE "allocation" ADD COLUMN "created_by_operation_id" text NULL;
-- modify "instance" table
ALTER TABLE "instance" ADD COLUMN "generation" bigint NOT NULL DEFAULT 1, ADD COLUMN "drift" jsonb NULL, ADD COLUMN "observed_at" timestamptz NULL;
-- modify "member" table
ALTER TABLE "member" ADD COLUMN "labels" jsonb NULL;
-- modify "operation" table
ALTER TABLE "operation" ADD COLUMN "targets" jsonb NULL, ADD COLUMN "force" boolean NOT NULL DEFAULT false, ADD COLUMN "on_deadline" character varying NOT NULL DEFAULT 'FAIL', ADD COLUMN "forced_at" timestamptz NULL, ADD COLUMN "cancel_requested_at" timestamptz NULL, ADD COLUMN "cancel_requester" text NOT NULL DEFAULT '', ADD COLUMN "cancel_reason" text NOT NULL DEFAULT '', ADD COLUMN "cancel_message" text NOT NULL DEFAULT '', ADD COLUMN "retry_of" text NULL;
-- modify "project" table
ALTER TABLE "project" ADD COLUMN "max_members" bigint NULL, ADD COLUMN "max_gpus" bigint NULL;
-- create "instance_generation" table
CREATE TABLE "instance_generation" ("id" text NOT NULL, "tenant_id" text NOT NULL, "project_id" text NOT NULL, "instance_id" text NOT NULL, "number" bigint NOT NULL, "manifest_id" text NOT NULL, "app_version" text NOT NULL, "config" jsonb NULL, "operation_id" text NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "generation_instance_id_number" to table: "instance_generation"
CREATE UNIQUE INDEX "generation_instance_id_number" ON "instance_generation" ("instance_id", "number");
-- create "orphan" table
CREATE TABLE "orphan" ("id" text NOT NULL, "tenant_id" text NOT NULL, "project_id" text NOT NULL, "kind" character varying NOT NULL, "instance_id" text NOT NULL, "operation_id" text NULL, "member_id" text NULL, "node_id" text NULL, "allocation_id" text NULL, "owner" text NOT NULL DEFAULT '', "message" text NOT NULL DEFAULT '', "attempts" bigint NOT NULL DEFAULT 0, "last_error" text NOT NULL DEFAULT '', "next_try_at" timestamptz NOT NULL, "created_at" timestamptz NOT NULL, "resolved_at" timestamptz NULL, "resolution" text NOT NULL DEFAULT '', PRIMARY KEY ("id"));
-- create index "orphan_due" to table: "orphan"
CREATE INDEX "orphan_due" ON "orphan" ("next_try_at", "id") WHERE resolved_at IS NULL;
-- create index "orphan_project_id_id" to table: "orphan"
CREATE INDEX "orphan_project_id_id" ON "orphan" ("project_id", "id");
-- create index "orphan_open_by_instance" to table: "orphan"
CREATE INDEX "orphan_open_by_instance" ON "orphan" ("instance_id", "id") WHERE resolved_at IS NULL;
-- create index "orphan_open_by_allocation" to table: "orphan"
CREATE INDEX "orphan_open_by_allocation" ON "orphan" ("allocation_id") WHERE ((resolved_at IS NULL) AND (allocation_id IS NOT NULL));
-- create "sku_price" table
CREATE TABLE "sku_price" ("id" text NOT NULL, "sku" text NOT NULL, "currency" text NOT NULL, "hourly_micros" bigint NOT NULL, "updated_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "sku_price_sku_key" to table: "sku_price"
CREATE UNIQUE INDEX "sku_price_sku_key" ON "sku_price" ("sku");

-- Who may see and write the new tables, as the other tables of a project have it.
ALTER TABLE "instance_generation" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "instance_generation" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "instance_generation" TO app_owner USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON "instance_generation" TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON "instance_generation" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "instance_generation" TO app_worker USING (true) WITH CHECK (true);
ALTER TABLE "orphan" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "orphan" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "orphan" TO app_owner USING (true) WITH CHECK (true);
CREATE POLICY api_scope ON "orphan" TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])) WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
CREATE POLICY operator_all ON "orphan" TO app_operator USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON "orphan" TO app_worker USING (true) WITH CHECK (true);
ALTER TABLE "sku_price" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "sku_price" FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON "sku_price" TO app_owner USING (true) WITH CHECK (true);
CREATE POLICY api_read ON "sku_price" FOR SELECT TO app_api USING (true);
CREATE POLICY operator_all ON "sku_price" TO app_operator USING (true) WITH CHECK (true);
GRANT SELECT, INSERT ON instance_generation TO app_api, app_operator, app_worker;
GRANT SELECT, INSERT, UPDATE ON orphan TO app_api, app_operator, app_worker;
GRANT SELECT ON sku_price TO app_api;
GRANT SELECT, INSERT, UPDATE ON sku_price TO app_operator;

ALTER TABLE instance_generation ADD FOREIGN KEY (instance_id, tenant_id) REFERENCES instance (id, tenant_id),
  ADD FOREIGN KEY (manifest_id) REFERENCES manifest (id);
ALTER TABLE orphan ADD FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id),
  ADD FOREIGN KEY (instance_id, tenant_id) REFERENCES instance (id, tenant_id),
  ADD FOREIGN KEY (operation_id, tenant_id) REFERENCES operation (id, tenant_id),
  ADD FOREIGN KEY (member_id, tenant_id) REFERENCES member (id, tenant_id),
  ADD FOREIGN KEY (allocation_id, tenant_id) REFERENCES allocation (id, tenant_id),
  ADD FOREIGN KEY (node_id) REFERENCES compute_node (id);
ALTER TABLE operation ADD FOREIGN KEY (retry_of, tenant_id) REFERENCES operation (id, tenant_id);

-- What runs already is its first generation.
INSERT INTO instance_generation (id, tenant_id, project_id, instance_id, number, manifest_id, app_version, config, created_at)
  SELECT 'gen_' || substr(id, 5), tenant_id, project_id, id, 1, manifest_id, app_version, config, created_at FROM instance;
