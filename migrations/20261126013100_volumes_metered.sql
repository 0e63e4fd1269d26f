-- +goose Up
-- Volumes are metered: their size, from a node's first proof that one exists through every resize to the proof that nothing
-- is left of it. As capacity is: from facts, behind the lock of a source's row. See docs/adr/0123.
ALTER TABLE usage_record DROP CONSTRAINT usage_record_basis_check,
  ADD CONSTRAINT usage_record_basis_check CHECK (basis IN ('CAPACITY', 'STORAGE', 'APP', 'SHOWBACK'));
ALTER TABLE usage_source DROP CONSTRAINT usage_source_basis_check,
  ADD CONSTRAINT usage_source_basis_check CHECK (basis IN ('CAPACITY', 'STORAGE', 'APP'));
ALTER TABLE ledger_entry ADD COLUMN volume_id text;  -- whose storage an entry is of

ALTER TABLE volume
  ADD COLUMN present_at timestamptz,                 -- when a node first proved that it exists
  ADD COLUMN lost_at timestamptz;                    -- when the only node that had it was taken out for good

-- What a volume was from a moment on, once a node had proved that it exists.
CREATE TABLE volume_fact (
  volume_id text NOT NULL,
  seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  at timestamptz NOT NULL,
  tenant_id text NOT NULL,
  project_id text NOT NULL,
  storage_class text NOT NULL,                       -- by name
  state text NOT NULL CHECK (state IN ('PRESENT', 'DELETING', 'DELETED', 'LOST')),
  size_gib bigint NOT NULL,                          -- 0 once nothing is left
  PRIMARY KEY (volume_id, seq)
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON volume_fact FOR EACH STATEMENT EXECUTE FUNCTION platform.append_only();

-- +goose StatementBegin
CREATE FUNCTION platform.note_volume() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE known text := CASE WHEN NEW.status = 'DELETED' THEN 'DELETED' WHEN NEW.lost_at IS NOT NULL THEN 'LOST'
  WHEN NEW.status = 'DELETING' THEN 'DELETING' ELSE 'PRESENT' END;
BEGIN
  INSERT INTO usage_source AS s (source, basis, tenant_id, project_id) VALUES (NEW.id, 'STORAGE', NEW.tenant_id, NEW.project_id)
    ON CONFLICT (source) DO UPDATE SET due_at = least(s.due_at, excluded.due_at);
  INSERT INTO volume_fact (volume_id, at, tenant_id, project_id, storage_class, state, size_gib)
    SELECT NEW.id, clock_timestamp(), NEW.tenant_id, NEW.project_id, c.name, known, CASE WHEN known IN ('DELETED', 'LOST') THEN 0 ELSE NEW.size_gib END
    FROM storage_class c WHERE c.id = NEW.storage_class_id;
  RETURN NULL;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.note_volume() FROM PUBLIC;
CREATE TRIGGER note_volume AFTER UPDATE OF present_at, size_gib, status, lost_at ON volume FOR EACH ROW
  WHEN (NEW.present_at IS NOT NULL AND OLD.lost_at IS NULL
    AND (OLD.present_at, OLD.size_gib, OLD.status, OLD.lost_at) IS DISTINCT FROM (NEW.present_at, NEW.size_gib, NEW.status, NEW.lost_at))
  EXECUTE FUNCTION platform.note_volume();

-- As before, and the first proof is kept: of a volume that is not being deleted already.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.report_volumes(volumes text[], states text[], used bigint[], messages text[]) RETURNS TABLE (volume_id text, ended boolean)
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE volume v SET
      status = CASE WHEN g.state = 'GONE' THEN 'DELETED' ELSE v.status END,
      deleted_at = CASE WHEN g.state = 'GONE' THEN now() END,
      present_at = CASE WHEN g.state = 'PRESENT' AND v.status = 'READY' THEN coalesce(v.present_at, now()) ELSE v.present_at END,
      used_bytes = CASE g.state WHEN 'GONE' THEN 0 WHEN 'PRESENT' THEN g.used ELSE v.used_bytes END,
      measured_at = CASE WHEN g.state = 'BUSY' THEN v.measured_at ELSE now() END,
      message = g.message, updated_at = CASE WHEN g.state = 'GONE' THEN now() ELSE v.updated_at END
    FROM unnest(volumes, states, used, messages) AS g (id, state, used, message), (SELECT (platform.scope('app.node'))[1] AS id) me
    WHERE v.id = g.id AND v.deleted_at IS NULL
      AND CASE WHEN g.state = 'GONE' THEN v.status = 'DELETING' AND platform.volume_deleter(v) = me.id
        ELSE EXISTS (SELECT FROM volume_node n WHERE n.volume_id = v.id AND n.node_id = me.id) OR platform.volume_deleter(v) = me.id END
    RETURNING v.id, g.state = 'GONE'
$$;

-- As before, and a local volume that nobody deletes is lost with its node.
CREATE OR REPLACE FUNCTION platform.retire_volumes() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE volume SET status = 'DELETED', deleted_at = now(), updated_at = now(), message = 'its node was taken out for good, and its files with it'
    WHERE status = 'DELETING' AND node_id = NEW.id;
  UPDATE volume SET lost_at = now(), updated_at = now(), message = 'its node was taken out for good, and its files with it: delete it'
    WHERE status = 'READY' AND node_id = NEW.id;
  RETURN NULL;
END $$;
-- +goose StatementEnd

ALTER TABLE volume_fact ENABLE ROW LEVEL SECURITY;
ALTER TABLE volume_fact FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON volume_fact TO app_owner USING (true) WITH CHECK (true);
CREATE POLICY operator_read ON volume_fact FOR SELECT TO app_operator USING (true);
CREATE POLICY worker_read ON volume_fact FOR SELECT TO app_worker USING (true);
GRANT SELECT ON volume_fact TO app_operator, app_worker;

-- What exists is metered from now on. A measure was a proof already.
UPDATE volume v SET lost_at = n.retired_at FROM compute_node n WHERE n.id = v.node_id AND n.retired_at IS NOT NULL AND v.status = 'READY';
UPDATE volume SET present_at = now() WHERE status <> 'DELETED' AND measured_at IS NOT NULL AND lost_at IS NULL;
