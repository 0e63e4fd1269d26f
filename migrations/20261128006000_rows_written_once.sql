-- +goose Up
-- What an operation writes: less of it, and in place where a row may stay where it is.

-- A step that began and ended between two transactions is stored once.
INSERT INTO lifecycle_transition (machine, from_state, to_state) VALUES ('operation_step', 'PENDING', 'SUCCEEDED');

-- A trigger before the update of a row locks the row once more, which is written to the log, whether it runs or not. These
-- refuse, and change nothing: they do so as well after it.
DROP TRIGGER guard_transition ON "instance";
CREATE TRIGGER guard_transition AFTER UPDATE ON "instance" FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
  EXECUTE FUNCTION platform.guard_transition('instance', 'status');
DROP TRIGGER guard_transition ON "operation";
CREATE TRIGGER guard_transition AFTER UPDATE ON "operation" FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state)
  EXECUTE FUNCTION platform.guard_transition('operation', 'state');
DROP TRIGGER guard_transition ON "operation_step";
CREATE TRIGGER guard_transition AFTER UPDATE ON "operation_step" FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state)
  EXECUTE FUNCTION platform.guard_transition('operation_step', 'state');
DROP TRIGGER refuse_old_claim ON operation;
CREATE TRIGGER refuse_old_claim AFTER UPDATE OF claimed_by ON operation FOR EACH ROW
  WHEN (OLD.claimed_by IS NULL AND NEW.claimed_by IS NOT NULL AND current_user = 'app_worker'
    AND coalesce(current_setting('app.claims_known', true), '') = '')
  EXECUTE FUNCTION platform.refuse_old_claim();

-- An index whose condition names the status makes every change of the status one of all indexes of the row.
CREATE INDEX "instance_live" ON "instance" ("id") WHERE (released_at IS NULL);
DROP INDEX "instance_running";

-- Rows that change a few times soon after they came find space for that on their page.
ALTER TABLE "instance" SET (fillfactor = 70);
ALTER TABLE "member" SET (fillfactor = 70);
ALTER TABLE "operation" SET (fillfactor = 60);
ALTER TABLE "operation_step" SET (fillfactor = 70);
-- +goose Down
