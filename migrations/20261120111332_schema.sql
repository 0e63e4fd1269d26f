-- +goose Up
-- create "adapter" table
CREATE TABLE "adapter" ("id" text NOT NULL, "name" text NOT NULL, "url" text NOT NULL, "description" jsonb NULL, "last_seen_at" timestamptz NULL, "last_error" text NOT NULL DEFAULT '', "feed_epoch" text NOT NULL DEFAULT '', "feed_cursor" text NOT NULL DEFAULT '', "feed_holder" text NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "adapter_name_key" to table: "adapter"
CREATE UNIQUE INDEX "adapter_name_key" ON "adapter" ("name");
-- create "allocation" table
CREATE TABLE "allocation" ("id" text NOT NULL, "tenant_id" text NOT NULL, "project_id" text NOT NULL, "name" text NOT NULL DEFAULT '', "shape" character varying NOT NULL, "gpu_count" bigint NOT NULL, "sku" text NOT NULL DEFAULT '', "region" text NOT NULL DEFAULT '', "status" character varying NOT NULL, "node_id" text NULL, "instance_id" text NULL, "scheduler_type" text NOT NULL DEFAULT '', "integration_metadata" jsonb NULL, "release_operation_id" text NULL, "created_at" timestamptz NOT NULL, "released_at" timestamptz NULL, PRIMARY KEY ("id"));
-- create index "allocation_id_tenant_id" to table: "allocation"
CREATE UNIQUE INDEX "allocation_id_tenant_id" ON "allocation" ("id", "tenant_id");
-- create index "allocation_instance_id" to table: "allocation"
CREATE INDEX "allocation_instance_id" ON "allocation" ("instance_id") WHERE (instance_id IS NOT NULL);
-- create index "allocation_node_id" to table: "allocation"
CREATE INDEX "allocation_node_id" ON "allocation" ("node_id") WHERE (released_at IS NULL);
-- create index "allocation_project_id_id" to table: "allocation"
CREATE INDEX "allocation_project_id_id" ON "allocation" ("project_id", "id");
-- create "app" table
CREATE TABLE "app" ("id" text NOT NULL, "slug" text NOT NULL, "display_name" text NOT NULL DEFAULT '', "summary" text NOT NULL DEFAULT '', "permission_family" text NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "app_slug_key" to table: "app"
CREATE UNIQUE INDEX "app_slug_key" ON "app" ("slug");
-- create "artifact" table
CREATE TABLE "artifact" ("id" text NOT NULL, "name" text NOT NULL DEFAULT '', "media_type" text NOT NULL DEFAULT '', "ref" text NOT NULL DEFAULT '', "digest" text NOT NULL, "size_bytes" bigint NOT NULL DEFAULT 0, "stage" character varying NOT NULL DEFAULT 'DRAFT', "evidence" jsonb NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "artifact_digest_key" to table: "artifact"
CREATE UNIQUE INDEX "artifact_digest_key" ON "artifact" ("digest");
-- create "audit_entry" table
CREATE TABLE "audit_entry" ("id" text NOT NULL, "tenant_id" text NULL, "project_id" text NULL, "actor_kind" text NOT NULL, "actor_id" text NOT NULL DEFAULT '', "actor_name" text NOT NULL DEFAULT '', "permission_key" text NOT NULL, "action" text NOT NULL, "allowed" boolean NOT NULL, "object_id" text NOT NULL DEFAULT '', "before" jsonb NULL, "after" jsonb NULL, "reason" text NOT NULL DEFAULT '', "code" text NOT NULL DEFAULT '', "repeats" bigint NOT NULL DEFAULT 1, "correlation_id" text NOT NULL, "origin" text NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "auditentry_project_id_id" to table: "audit_entry"
CREATE INDEX "auditentry_project_id_id" ON "audit_entry" ("project_id", "id");
-- create "compute_node" table
CREATE TABLE "compute_node" ("id" text NOT NULL, "name" text NOT NULL, "address" text NOT NULL, "status" character varying NOT NULL, "region" text NOT NULL DEFAULT '', "sku" text NOT NULL DEFAULT '', "cpus" bigint NOT NULL, "memory_mib" bigint NOT NULL, "gpus" bigint NOT NULL, "gpu_model" text NOT NULL DEFAULT '', "gpus_simulated" boolean NOT NULL DEFAULT false, "isolation" text NOT NULL, "sealing_key" text NOT NULL, "agent_version" text NOT NULL DEFAULT '', "boot_id" text NOT NULL DEFAULT '', "kernel" text NOT NULL DEFAULT '', "labels" jsonb NULL, "last_seen_at" timestamptz NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "compute_node_name_key" to table: "compute_node"
CREATE UNIQUE INDEX "compute_node_name_key" ON "compute_node" ("name");
-- create "entitlement" table
CREATE TABLE "entitlement" ("id" text NOT NULL, "tenant_id" text NOT NULL, "project_id" text NOT NULL, "app_slug" text NOT NULL, "granted_by" text NOT NULL DEFAULT '', "revoked_at" timestamptz NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "entitlement_one_live" to table: "entitlement"
CREATE UNIQUE INDEX "entitlement_one_live" ON "entitlement" ("project_id", "app_slug") WHERE (revoked_at IS NULL);
-- create "app_instance_event" table
CREATE TABLE "app_instance_event" ("id" text NOT NULL, "tenant_id" text NOT NULL, "project_id" text NOT NULL, "instance_id" text NOT NULL, "seq" bigint NOT NULL, "xid" bigint NOT NULL DEFAULT ((pg_current_xact_id())::text)::bigint, "position" bigint NOT NULL DEFAULT nextval('event_position'::regclass), "type" text NOT NULL, "app_slug" text NOT NULL, "permission_family" text NOT NULL, "operation_id" text NULL, "member_id" text NULL, "message" text NOT NULL DEFAULT '', "payload" jsonb NULL, "correlation_id" text NOT NULL, "occurred_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "event_instance_id_seq" to table: "app_instance_event"
CREATE UNIQUE INDEX "event_instance_id_seq" ON "app_instance_event" ("instance_id", "seq");
-- create index "event_project_id_xid_position" to table: "app_instance_event"
CREATE INDEX "event_project_id_xid_position" ON "app_instance_event" ("project_id", "xid", "position");
-- create "idempotency" table
CREATE TABLE "idempotency" ("id" text NOT NULL, "input_digest" bytea NOT NULL, "result" jsonb NULL, "tenant_id" text NULL, "project_id" text NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create "instance" table
CREATE TABLE "instance" ("id" text NOT NULL, "tenant_id" text NOT NULL, "project_id" text NOT NULL, "name" text NOT NULL, "app_slug" text NOT NULL, "app_version" text NOT NULL, "permission_family" text NOT NULL, "manifest_id" text NOT NULL, "status" character varying NOT NULL, "health" character varying NOT NULL DEFAULT 'UNKNOWN', "health_message" text NOT NULL DEFAULT '', "revision" bigint NOT NULL DEFAULT 0, "config" jsonb NULL, "roles" jsonb NULL, "bound_capacity_shape" character varying NOT NULL, "operating_mode" text NOT NULL DEFAULT 'TENANT_DEDICATED', "control_plane_scope" text NOT NULL DEFAULT 'PROJECT', "runtime_backend" text NOT NULL, "smoke" boolean NOT NULL DEFAULT false, "failure_code" text NOT NULL DEFAULT '', "failure_message" text NOT NULL DEFAULT '', "failure_owner" text NOT NULL DEFAULT '', "failure_retryable" boolean NOT NULL DEFAULT false, "last_operation_id" text NULL, "correlation_id" text NOT NULL, "created_at" timestamptz NOT NULL, "updated_at" timestamptz NOT NULL, "released_at" timestamptz NULL, PRIMARY KEY ("id"));
-- create index "instance_id_tenant_id" to table: "instance"
CREATE UNIQUE INDEX "instance_id_tenant_id" ON "instance" ("id", "tenant_id");
-- create index "instance_manifest_id" to table: "instance"
CREATE INDEX "instance_manifest_id" ON "instance" ("manifest_id") WHERE (released_at IS NULL);
-- create index "instance_name_live" to table: "instance"
CREATE UNIQUE INDEX "instance_name_live" ON "instance" ("project_id", "name") WHERE (released_at IS NULL);
-- create index "instance_project_id_id" to table: "instance"
CREATE INDEX "instance_project_id_id" ON "instance" ("project_id", "id");
-- create index "instance_runtime_backend" to table: "instance"
CREATE INDEX "instance_runtime_backend" ON "instance" ("runtime_backend") WHERE (released_at IS NULL);
-- create "login_code" table
CREATE TABLE "login_code" ("id" text NOT NULL, "user_id" text NOT NULL, "secret_hash" bytea NOT NULL, "expires_at" timestamptz NOT NULL, "used_at" timestamptz NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create "manifest" table
CREATE TABLE "manifest" ("id" text NOT NULL, "app_id" text NOT NULL, "app_slug" text NOT NULL, "version" text NOT NULL, "display_name" text NOT NULL DEFAULT '', "summary" text NOT NULL DEFAULT '', "stage" character varying NOT NULL DEFAULT 'DRAFT', "digest" text NOT NULL, "document" bytea NOT NULL, "adapter_name" text NOT NULL, "evidence" jsonb NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "manifest_app_slug_id" to table: "manifest"
CREATE INDEX "manifest_app_slug_id" ON "manifest" ("app_slug", "id");
-- create index "manifest_app_slug_version" to table: "manifest"
CREATE UNIQUE INDEX "manifest_app_slug_version" ON "manifest" ("app_slug", "version");
-- create index "manifest_one_active" to table: "manifest"
CREATE UNIQUE INDEX "manifest_one_active" ON "manifest" ("app_slug") WHERE ((stage)::text = 'ACTIVE'::text);
-- create "manifest_artifact" table
CREATE TABLE "manifest_artifact" ("id" text NOT NULL, "manifest_id" text NOT NULL, "artifact_id" text NOT NULL, PRIMARY KEY ("id"));
-- create index "manifestartifact_artifact_id" to table: "manifest_artifact"
CREATE INDEX "manifestartifact_artifact_id" ON "manifest_artifact" ("artifact_id");
-- create index "manifestartifact_manifest_id_artifact_id" to table: "manifest_artifact"
CREATE UNIQUE INDEX "manifestartifact_manifest_id_artifact_id" ON "manifest_artifact" ("manifest_id", "artifact_id");
-- create "member" table
CREATE TABLE "member" ("id" text NOT NULL, "tenant_id" text NOT NULL, "project_id" text NOT NULL, "instance_id" text NOT NULL, "component_key" text NOT NULL, "ordinal" bigint NOT NULL, "status" character varying NOT NULL, "cordoned" boolean NOT NULL DEFAULT false, "health" character varying NOT NULL DEFAULT 'UNKNOWN', "health_message" text NOT NULL DEFAULT '', "allocation_id" text NULL, "node_id" text NULL, "last_operation_id" text NULL, "correlation_id" text NOT NULL DEFAULT '', "adapter_detail" jsonb NULL, "created_at" timestamptz NOT NULL, "updated_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "member_allocation_id" to table: "member"
CREATE INDEX "member_allocation_id" ON "member" ("allocation_id");
-- create index "member_id_tenant_id" to table: "member"
CREATE UNIQUE INDEX "member_id_tenant_id" ON "member" ("id", "tenant_id");
-- create index "member_instance_id_id" to table: "member"
CREATE INDEX "member_instance_id_id" ON "member" ("instance_id", "id");
-- create index "member_ordinal_live" to table: "member"
CREATE UNIQUE INDEX "member_ordinal_live" ON "member" ("instance_id", "component_key", "ordinal") WHERE ((status)::text <> 'REMOVED'::text);
-- create "node_credential" table
CREATE TABLE "node_credential" ("id" text NOT NULL, "node_id" text NOT NULL, "secret_hash" bytea NOT NULL, "expires_at" timestamptz NOT NULL, "first_used_at" timestamptz NULL, "revoked_at" timestamptz NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "nodecredential_node_id" to table: "node_credential"
CREATE INDEX "nodecredential_node_id" ON "node_credential" ("node_id");
-- create "node_enrolment" table
CREATE TABLE "node_enrolment" ("id" text NOT NULL, "name" text NOT NULL DEFAULT '', "secret_hash" bytea NOT NULL, "expires_at" timestamptz NOT NULL, "used_at" timestamptz NULL, "node_id" text NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create "node_task" table
CREATE TABLE "node_task" ("id" text NOT NULL, "tenant_id" text NOT NULL, "project_id" text NOT NULL, "instance_id" text NOT NULL, "member_id" text NOT NULL, "node_id" text NOT NULL, "operation_id" text NULL, "kind" character varying NOT NULL, "spec" jsonb NULL, "spec_digest" bytea NOT NULL, "fence" bigint NOT NULL DEFAULT 1, "state" character varying NOT NULL, "cancel_requested" boolean NOT NULL DEFAULT false, "timeout_seconds" bigint NOT NULL, "exit_code" bigint NULL, "result" jsonb NULL, "message" text NOT NULL DEFAULT '', "stdout" text NOT NULL DEFAULT '', "stderr" text NOT NULL DEFAULT '', "idempotency_key" text NOT NULL, "created_at" timestamptz NOT NULL, "started_at" timestamptz NULL, "ended_at" timestamptz NULL, PRIMARY KEY ("id"));
-- create index "node_task_open" to table: "node_task"
CREATE INDEX "node_task_open" ON "node_task" ("node_id", "id") WHERE (ended_at IS NULL);
-- create index "nodetask_member_id_id" to table: "node_task"
CREATE INDEX "nodetask_member_id_id" ON "node_task" ("member_id", "id");
-- create index "nodetask_member_id_idempotency_key" to table: "node_task"
CREATE UNIQUE INDEX "nodetask_member_id_idempotency_key" ON "node_task" ("member_id", "idempotency_key");
-- create index "nodetask_operation_id" to table: "node_task"
CREATE INDEX "nodetask_operation_id" ON "node_task" ("operation_id") WHERE (operation_id IS NOT NULL);
-- create "operation" table
CREATE TABLE "operation" ("id" text NOT NULL, "tenant_id" text NOT NULL, "project_id" text NOT NULL, "instance_id" text NULL, "allocation_id" text NULL, "kind" character varying NOT NULL, "state" character varying NOT NULL, "outcome" character varying NULL, "adapter_name" text NOT NULL DEFAULT '', "phase" text NOT NULL DEFAULT '', "percent" bigint NOT NULL DEFAULT 0, "message" text NOT NULL DEFAULT '', "requester_kind" text NOT NULL, "requester_id" text NOT NULL, "requester_name" text NOT NULL DEFAULT '', "reason" text NOT NULL DEFAULT '', "correlation_id" text NOT NULL, "desired_change" jsonb NULL, "evidence" jsonb NULL, "error_code" text NOT NULL DEFAULT '', "error_message" text NOT NULL DEFAULT '', "error_owner" text NOT NULL DEFAULT '', "error_retryable" boolean NOT NULL DEFAULT false, "dispatch_attempt" bigint NOT NULL DEFAULT 0, "adapter_status" jsonb NULL, "claim_epoch" bigint NOT NULL DEFAULT 0, "claimed_by" text NULL, "failures" bigint NOT NULL DEFAULT 0, "next_run_at" timestamptz NOT NULL, "deadline" timestamptz NOT NULL, "created_at" timestamptz NOT NULL, "started_at" timestamptz NULL, "ended_at" timestamptz NULL, PRIMARY KEY ("id"));
-- create index "operation_claimed" to table: "operation"
CREATE INDEX "operation_claimed" ON "operation" ("claimed_by") WHERE (claimed_by IS NOT NULL);
-- create index "operation_due" to table: "operation"
CREATE INDEX "operation_due" ON "operation" ("next_run_at", "id") WHERE ((ended_at IS NULL) AND (claimed_by IS NULL));
-- create index "operation_id_tenant_id" to table: "operation"
CREATE UNIQUE INDEX "operation_id_tenant_id" ON "operation" ("id", "tenant_id");
-- create index "operation_instance_id_id" to table: "operation"
CREATE INDEX "operation_instance_id_id" ON "operation" ("instance_id", "id");
-- create index "operation_open_by_adapter" to table: "operation"
CREATE INDEX "operation_open_by_adapter" ON "operation" ("adapter_name") WHERE (ended_at IS NULL);
-- create index "operation_open_by_instance" to table: "operation"
CREATE INDEX "operation_open_by_instance" ON "operation" ("instance_id") WHERE ((ended_at IS NULL) AND (instance_id IS NOT NULL));
-- create index "operation_project_id_id" to table: "operation"
CREATE INDEX "operation_project_id_id" ON "operation" ("project_id", "id");
-- create "operation_step" table
CREATE TABLE "operation_step" ("id" text NOT NULL, "tenant_id" text NOT NULL, "project_id" text NOT NULL, "operation_id" text NOT NULL, "name" text NOT NULL, "ordinal" bigint NOT NULL, "state" character varying NOT NULL, "attempt" bigint NOT NULL DEFAULT 0, "message" text NOT NULL DEFAULT '', "evidence" jsonb NULL, "started_at" timestamptz NULL, "ended_at" timestamptz NULL, PRIMARY KEY ("id"));
-- create index "operationstep_operation_id_ordinal" to table: "operation_step"
CREATE UNIQUE INDEX "operationstep_operation_id_ordinal" ON "operation_step" ("operation_id", "ordinal");
-- create "project" table
CREATE TABLE "project" ("id" text NOT NULL, "tenant_id" text NOT NULL, "slug" text NOT NULL, "display_name" text NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "project_id_tenant_id" to table: "project"
CREATE UNIQUE INDEX "project_id_tenant_id" ON "project" ("id", "tenant_id");
-- create index "project_tenant_id_slug" to table: "project"
CREATE UNIQUE INDEX "project_tenant_id_slug" ON "project" ("tenant_id", "slug");
-- create "role_binding" table
CREATE TABLE "role_binding" ("id" text NOT NULL, "user_id" text NOT NULL, "role" text NOT NULL, "tenant_id" text NULL, "project_id" text NULL, "expires_at" timestamptz NULL, "revoked_at" timestamptz NULL, "granted_by" text NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "rolebinding_user_id" to table: "role_binding"
CREATE INDEX "rolebinding_user_id" ON "role_binding" ("user_id");
-- create "service_account" table
CREATE TABLE "service_account" ("id" text NOT NULL, "tenant_id" text NOT NULL, "project_id" text NOT NULL, "name" text NOT NULL, "permission_keys" jsonb NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "serviceaccount_id_tenant_id" to table: "service_account"
CREATE UNIQUE INDEX "serviceaccount_id_tenant_id" ON "service_account" ("id", "tenant_id");
-- create index "serviceaccount_project_id_name" to table: "service_account"
CREATE UNIQUE INDEX "serviceaccount_project_id_name" ON "service_account" ("project_id", "name");
-- create "service_account_key" table
CREATE TABLE "service_account_key" ("id" text NOT NULL, "tenant_id" text NOT NULL, "project_id" text NOT NULL, "service_account_id" text NOT NULL, "secret_hash" bytea NOT NULL, "expires_at" timestamptz NULL, "revoked_at" timestamptz NULL, "last_used_at" timestamptz NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "serviceaccountkey_service_account_id" to table: "service_account_key"
CREATE INDEX "serviceaccountkey_service_account_id" ON "service_account_key" ("service_account_id");
-- create "session" table
CREATE TABLE "session" ("id" text NOT NULL, "user_id" text NOT NULL, "secret_hash" bytea NOT NULL, "expires_at" timestamptz NOT NULL, "revoked_at" timestamptz NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "session_user_id" to table: "session"
CREATE INDEX "session_user_id" ON "session" ("user_id");
-- create "tenant" table
CREATE TABLE "tenant" ("id" text NOT NULL, "slug" text NOT NULL, "display_name" text NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "tenant_slug_key" to table: "tenant"
CREATE UNIQUE INDEX "tenant_slug_key" ON "tenant" ("slug");
-- create "person" table
CREATE TABLE "person" ("id" text NOT NULL, "tenant_id" text NULL, "email" text NOT NULL, "display_name" text NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "person_email_key" to table: "person"
CREATE UNIQUE INDEX "person_email_key" ON "person" ("email");
-- create index "user_tenant_id_id" to table: "person"
CREATE INDEX "user_tenant_id_id" ON "person" ("tenant_id", "id");
-- create "worker_process" table
CREATE TABLE "worker_process" ("id" text NOT NULL, "host" text NOT NULL DEFAULT '', "heartbeat_at" timestamptz NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));

-- +goose Down
-- reverse: create "worker_process" table
DROP TABLE "worker_process";
-- reverse: create index "user_tenant_id_id" to table: "person"
DROP INDEX "user_tenant_id_id";
-- reverse: create index "person_email_key" to table: "person"
DROP INDEX "person_email_key";
-- reverse: create "person" table
DROP TABLE "person";
-- reverse: create index "tenant_slug_key" to table: "tenant"
DROP INDEX "tenant_slug_key";
-- reverse: create "tenant" table
DROP TABLE "tenant";
-- reverse: create index "session_user_id" to table: "session"
DROP INDEX "session_user_id";
-- reverse: create "session" table
DROP TABLE "session";
-- reverse: create index "serviceaccountkey_service_account_id" to table: "service_account_key"
DROP INDEX "serviceaccountkey_service_account_id";
-- reverse: create "service_account_key" table
DROP TABLE "service_account_key";
-- reverse: create index "serviceaccount_project_id_name" to table: "service_account"
DROP INDEX "serviceaccount_project_id_name";
-- reverse: create index "serviceaccount_id_tenant_id" to table: "service_account"
DROP INDEX "serviceaccount_id_tenant_id";
-- reverse: create "service_account" table
DROP TABLE "service_account";
-- reverse: create index "rolebinding_user_id" to table: "role_binding"
DROP INDEX "rolebinding_user_id";
-- reverse: create "role_binding" table
DROP TABLE "role_binding";
-- reverse: create index "project_tenant_id_slug" to table: "project"
DROP INDEX "project_tenant_id_slug";
-- reverse: create index "project_id_tenant_id" to table: "project"
DROP INDEX "project_id_tenant_id";
-- reverse: create "project" table
DROP TABLE "project";
-- reverse: create index "operationstep_operation_id_ordinal" to table: "operation_step"
DROP INDEX "operationstep_operation_id_ordinal";
-- reverse: create "operation_step" table
DROP TABLE "operation_step";
-- reverse: create index "operation_project_id_id" to table: "operation"
DROP INDEX "operation_project_id_id";
-- reverse: create index "operation_open_by_instance" to table: "operation"
DROP INDEX "operation_open_by_instance";
-- reverse: create index "operation_open_by_adapter" to table: "operation"
DROP INDEX "operation_open_by_adapter";
-- reverse: create index "operation_instance_id_id" to table: "operation"
DROP INDEX "operation_instance_id_id";
-- reverse: create index "operation_id_tenant_id" to table: "operation"
DROP INDEX "operation_id_tenant_id";
-- reverse: create index "operation_due" to table: "operation"
DROP INDEX "operation_due";
-- reverse: create index "operation_claimed" to table: "operation"
DROP INDEX "operation_claimed";
-- reverse: create "operation" table
DROP TABLE "operation";
-- reverse: create index "nodetask_operation_id" to table: "node_task"
DROP INDEX "nodetask_operation_id";
-- reverse: create index "nodetask_member_id_idempotency_key" to table: "node_task"
DROP INDEX "nodetask_member_id_idempotency_key";
-- reverse: create index "nodetask_member_id_id" to table: "node_task"
DROP INDEX "nodetask_member_id_id";
-- reverse: create index "node_task_open" to table: "node_task"
DROP INDEX "node_task_open";
-- reverse: create "node_task" table
DROP TABLE "node_task";
-- reverse: create "node_enrolment" table
DROP TABLE "node_enrolment";
-- reverse: create index "nodecredential_node_id" to table: "node_credential"
DROP INDEX "nodecredential_node_id";
-- reverse: create "node_credential" table
DROP TABLE "node_credential";
-- reverse: create index "member_ordinal_live" to table: "member"
DROP INDEX "member_ordinal_live";
-- reverse: create index "member_instance_id_id" to table: "member"
DROP INDEX "member_instance_id_id";
-- reverse: create index "member_id_tenant_id" to table: "member"
DROP INDEX "member_id_tenant_id";
-- reverse: create index "member_allocation_id" to table: "member"
DROP INDEX "member_allocation_id";
-- reverse: create "member" table
DROP TABLE "member";
-- reverse: create index "manifestartifact_manifest_id_artifact_id" to table: "manifest_artifact"
DROP INDEX "manifestartifact_manifest_id_artifact_id";
-- reverse: create index "manifestartifact_artifact_id" to table: "manifest_artifact"
DROP INDEX "manifestartifact_artifact_id";
-- reverse: create "manifest_artifact" table
DROP TABLE "manifest_artifact";
-- reverse: create index "manifest_one_active" to table: "manifest"
DROP INDEX "manifest_one_active";
-- reverse: create index "manifest_app_slug_version" to table: "manifest"
DROP INDEX "manifest_app_slug_version";
-- reverse: create index "manifest_app_slug_id" to table: "manifest"
DROP INDEX "manifest_app_slug_id";
-- reverse: create "manifest" table
DROP TABLE "manifest";
-- reverse: create "login_code" table
DROP TABLE "login_code";
-- reverse: create index "instance_runtime_backend" to table: "instance"
DROP INDEX "instance_runtime_backend";
-- reverse: create index "instance_project_id_id" to table: "instance"
DROP INDEX "instance_project_id_id";
-- reverse: create index "instance_name_live" to table: "instance"
DROP INDEX "instance_name_live";
-- reverse: create index "instance_manifest_id" to table: "instance"
DROP INDEX "instance_manifest_id";
-- reverse: create index "instance_id_tenant_id" to table: "instance"
DROP INDEX "instance_id_tenant_id";
-- reverse: create "instance" table
DROP TABLE "instance";
-- reverse: create "idempotency" table
DROP TABLE "idempotency";
-- reverse: create index "event_project_id_xid_position" to table: "app_instance_event"
DROP INDEX "event_project_id_xid_position";
-- reverse: create index "event_instance_id_seq" to table: "app_instance_event"
DROP INDEX "event_instance_id_seq";
-- reverse: create "app_instance_event" table
DROP TABLE "app_instance_event";
-- reverse: create index "entitlement_one_live" to table: "entitlement"
DROP INDEX "entitlement_one_live";
-- reverse: create "entitlement" table
DROP TABLE "entitlement";
-- reverse: create index "compute_node_name_key" to table: "compute_node"
DROP INDEX "compute_node_name_key";
-- reverse: create "compute_node" table
DROP TABLE "compute_node";
-- reverse: create index "auditentry_project_id_id" to table: "audit_entry"
DROP INDEX "auditentry_project_id_id";
-- reverse: create "audit_entry" table
DROP TABLE "audit_entry";
-- reverse: create index "artifact_digest_key" to table: "artifact"
DROP INDEX "artifact_digest_key";
-- reverse: create "artifact" table
DROP TABLE "artifact";
-- reverse: create index "app_slug_key" to table: "app"
DROP INDEX "app_slug_key";
-- reverse: create "app" table
DROP TABLE "app";
-- reverse: create index "allocation_project_id_id" to table: "allocation"
DROP INDEX "allocation_project_id_id";
-- reverse: create index "allocation_node_id" to table: "allocation"
DROP INDEX "allocation_node_id";
-- reverse: create index "allocation_instance_id" to table: "allocation"
DROP INDEX "allocation_instance_id";
-- reverse: create index "allocation_id_tenant_id" to table: "allocation"
DROP INDEX "allocation_id_tenant_id";
-- reverse: create "allocation" table
DROP TABLE "allocation";
-- reverse: create index "adapter_name_key" to table: "adapter"
DROP INDEX "adapter_name_key";
-- reverse: create "adapter" table
DROP TABLE "adapter";
