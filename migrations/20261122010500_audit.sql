-- +goose Up
-- The audit's order of commits, which the sealer follows; what it is searched by; and a wall that even
-- the tables' owner meets: what is written in the audit stays as it is.
ALTER TABLE "audit_entry" ADD COLUMN "xid" bigint NOT NULL DEFAULT (pg_current_xact_id()::text)::bigint;
CREATE INDEX "auditentry_xid_id" ON "audit_entry" ("xid", "id");
CREATE INDEX "auditentry_permission_key_id" ON "audit_entry" ("permission_key", "id");
CREATE INDEX "auditentry_action_id" ON "audit_entry" ("action", "id");
CREATE INDEX "auditentry_created_at" ON "audit_entry" ("created_at");
CREATE INDEX "auditentry_break_glass" ON "audit_entry" ("id") WHERE break_glass;

-- +goose StatementBegin
CREATE FUNCTION platform.append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append only: % is refused', TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'insufficient_privilege', CONSTRAINT = 'append_only';
END $$;
-- +goose StatementEnd

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entry FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_link FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_checkpoint FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();

-- Callers of tenants may look and see nothing: no policy shows them a link. The verb then says why.
GRANT SELECT ON audit_link, audit_checkpoint TO app_api;
