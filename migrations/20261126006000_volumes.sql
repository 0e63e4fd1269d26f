-- +goose Up
-- Volumes: files that outlast members. Nodes serve storages by name; operators make classes of these names; tenants have
-- volumes of a class in a project, which launches bind to the slots of a manifest. Not Ent's but for the node's column: plain
-- statements alone read and write them. See docs/adr/0119.
ALTER TABLE "compute_node" ADD COLUMN "storage" jsonb NULL;
ALTER TABLE "project" ADD COLUMN "max_volume_gib" bigint NULL;

CREATE TABLE storage_class (
  id text PRIMARY KEY,
  name text NOT NULL UNIQUE,                         -- what nodes call the storage
  kind text NOT NULL CHECK (kind IN ('SHARED', 'LOCAL')),
  title text NOT NULL,
  description text NOT NULL DEFAULT '',
  disabled boolean NOT NULL DEFAULT false,           -- takes no new volumes
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);

CREATE TABLE volume (
  id text PRIMARY KEY,
  tenant_id text NOT NULL,
  project_id text NOT NULL,
  storage_class_id text NOT NULL REFERENCES storage_class (id),
  name text NOT NULL,
  size_gib bigint NOT NULL CHECK (size_gib > 0),
  status text NOT NULL CHECK (status IN ('READY', 'DELETING', 'DELETED')),
  node_id text REFERENCES compute_node (id),         -- of a local one, from its first use on
  used_bytes bigint,                                 -- the newest measure; null before there is one
  measured_at timestamptz,
  message text NOT NULL DEFAULT '',                  -- what a node last said of it; empty for nothing
  created_by text NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  deleted_at timestamptz,                            -- when a node had proved that nothing is left
  UNIQUE (id, project_id),
  CHECK ((deleted_at IS NOT NULL) = (status = 'DELETED')),
  FOREIGN KEY (project_id, tenant_id) REFERENCES project (id, tenant_id)
);
CREATE UNIQUE INDEX volume_name_live ON volume (project_id, name) WHERE deleted_at IS NULL;
CREATE INDEX volume_project ON volume (project_id, id);
CREATE INDEX volume_class ON volume (storage_class_id) WHERE deleted_at IS NULL;

-- Which volume an instance has in which slot of its manifest, and where its members have it: [{slot, volumeId, path, readOnly,
-- components}], null for none. Whose volume it is, the database holds too.
ALTER TABLE "instance" ADD COLUMN "volumes" jsonb NULL;
CREATE INDEX instance_volumes ON instance USING gin (volumes jsonb_path_ops) WHERE volumes IS NOT NULL AND released_at IS NULL;
-- +goose StatementBegin
CREATE FUNCTION platform.guard_volumes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM jsonb_array_elements(NEW.volumes) b WHERE NOT EXISTS (
      SELECT FROM volume v WHERE v.id = b ->> 'volumeId' AND v.project_id = NEW.project_id AND v.status = 'READY')) THEN
    RAISE EXCEPTION 'an instance uses volumes of its own project that are ready' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.guard_volumes() FROM PUBLIC;
CREATE TRIGGER guard_volumes BEFORE INSERT ON instance FOR EACH ROW WHEN (NEW.volumes IS NOT NULL) EXECUTE FUNCTION platform.guard_volumes();

-- The nodes whose members have, or had, a volume: where files of it may be.
CREATE TABLE volume_node (
  volume_id text NOT NULL REFERENCES volume (id),
  node_id text NOT NULL REFERENCES compute_node (id),
  PRIMARY KEY (volume_id, node_id)
);
CREATE INDEX volume_node_node ON volume_node (node_id);

-- A member that is seated takes its instance's volumes to its node. A local one is there from then on. The verb has refused
-- nodes that do not serve them; of two launches that settle the place of one volume at once, the second waits and is refused.
-- +goose StatementBegin
CREATE FUNCTION platform.seat_volumes() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE seat record;
BEGIN
  FOR seat IN
    SELECT DISTINCT b ->> 'volumeId' AS volume_id, s.node_id FROM seated s JOIN instance i ON i.id = s.instance_id AND i.volumes IS NOT NULL
      CROSS JOIN jsonb_array_elements(i.volumes) b
    WHERE s.node_id IS NOT NULL AND (b -> 'components' = '[]' OR b -> 'components' ? s.component_key) ORDER BY 1, 2
  LOOP
    UPDATE volume v SET node_id = seat.node_id FROM storage_class c
      WHERE v.id = seat.volume_id AND v.node_id IS NULL AND c.id = v.storage_class_id AND c.kind = 'LOCAL';
    IF EXISTS (SELECT FROM volume v WHERE v.id = seat.volume_id AND v.node_id <> seat.node_id) THEN
      RAISE EXCEPTION 'volume % is on another node', seat.volume_id USING ERRCODE = 'GP511';
    END IF;
    INSERT INTO volume_node (volume_id, node_id) VALUES (seat.volume_id, seat.node_id) ON CONFLICT DO NOTHING;
  END LOOP;
  RETURN NULL;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.seat_volumes() FROM PUBLIC;
CREATE TRIGGER seat_volumes AFTER INSERT ON member REFERENCING NEW TABLE AS seated FOR EACH STATEMENT EXECUTE FUNCTION platform.seat_volumes();

-- The walls of a member as its node is to build them, with its volumes.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.member_binding(wanted text) RETURNS jsonb
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT jsonb_build_object('allocationId', a.id, 'exclusive', a.shape = 'BAREMETAL', 'profile', m.profile, 'class', m.isolation_class,
    'devices', coalesce(a.devices, '[]'), 'memoryMiB', a.memory_mib, 'cpuMillis', a.cpu_millis, 'pids', m.max_pids)
    || CASE WHEN i.volumes IS NULL THEN '{}' ELSE jsonb_build_object('volumes', (
      SELECT coalesce(jsonb_agg(jsonb_build_object('id', v.id, 'storage', c.name, 'path', b ->> 'path', 'readOnly', b -> 'readOnly',
        'sizeBytes', v.size_gib << 30) ORDER BY b ->> 'path'), '[]')
      FROM jsonb_array_elements(i.volumes) b JOIN volume v ON v.id = b ->> 'volumeId' JOIN storage_class c ON c.id = v.storage_class_id
      WHERE b -> 'components' = '[]' OR b -> 'components' ? m.component_key)) END
  FROM member m JOIN allocation a ON a.id = m.allocation_id JOIN instance i ON i.id = m.instance_id WHERE m.id = wanted
$$;

-- Which node deletes the files of a volume: of a local one its node; of a shared one the first that is online, serves the
-- storage and offers it. NULL while there is none.
CREATE FUNCTION platform.volume_deleter(v volume) RETURNS text
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT CASE c.kind WHEN 'LOCAL' THEN v.node_id ELSE (
    SELECT n.id FROM compute_node n WHERE n.status = 'ONLINE' AND n.retired_at IS NULL AND jsonb_typeof(n.storage) = 'array'
      AND EXISTS (SELECT FROM jsonb_array_elements(n.storage) s WHERE s ->> 'name' = c.name AND s ->> 'kind' = c.kind AND s ->> 'reason' = '')
    ORDER BY n.id LIMIT 1) END
  FROM storage_class c WHERE c.id = v.storage_class_id
$$;

-- The volumes that the calling node's agent looks after: those that its members have or had, and those that it is to delete.
CREATE FUNCTION platform.node_volumes() RETURNS jsonb
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH me AS (SELECT (platform.scope('app.node'))[1] AS id),
    mine AS (
      SELECT v.id, v.storage_class_id, v.size_gib, false AS gone FROM me JOIN volume_node n ON n.node_id = me.id JOIN volume v ON v.id = n.volume_id
        WHERE v.status = 'READY'
      UNION ALL
      SELECT v.id, v.storage_class_id, v.size_gib, true FROM me JOIN volume v ON v.status = 'DELETING' AND v.deleted_at IS NULL
        WHERE platform.volume_deleter(v) = me.id)
  SELECT coalesce(jsonb_agg(jsonb_build_object('id', m.id, 'storage', c.name, 'sizeBytes', m.size_gib << 30, 'gone', m.gone) ORDER BY m.id), '[]')
  FROM mine m JOIN storage_class c ON c.id = m.storage_class_id
$$;

-- What the calling node's agent says of volumes that it looks after. One that is being deleted is at its end once the node
-- that deletes it says so; a measure of one is kept from whichever node sends it.
CREATE FUNCTION platform.report_volumes(volumes text[], states text[], used bigint[], messages text[]) RETURNS TABLE (volume_id text, ended boolean)
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE volume v SET
      status = CASE WHEN g.state = 'GONE' THEN 'DELETED' ELSE v.status END,
      deleted_at = CASE WHEN g.state = 'GONE' THEN now() END,
      used_bytes = CASE g.state WHEN 'GONE' THEN 0 WHEN 'PRESENT' THEN g.used ELSE v.used_bytes END,
      measured_at = CASE WHEN g.state = 'BUSY' THEN v.measured_at ELSE now() END,
      message = g.message, updated_at = CASE WHEN g.state = 'GONE' THEN now() ELSE v.updated_at END
    FROM unnest(volumes, states, used, messages) AS g (id, state, used, message), (SELECT (platform.scope('app.node'))[1] AS id) me
    WHERE v.id = g.id AND v.deleted_at IS NULL
      AND CASE WHEN g.state = 'GONE' THEN v.status = 'DELETING' AND platform.volume_deleter(v) = me.id
        ELSE EXISTS (SELECT FROM volume_node n WHERE n.volume_id = v.id AND n.node_id = me.id) OR platform.volume_deleter(v) = me.id END
    RETURNING v.id, g.state = 'GONE'
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.volume_deleter(volume), platform.node_volumes(), platform.report_volumes(text[], text[], bigint[], text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.volume_deleter(volume) TO app_api, app_operator, app_worker;
GRANT EXECUTE ON FUNCTION platform.node_volumes() TO app_node, app_api, app_operator;
GRANT EXECUTE ON FUNCTION platform.report_volumes(text[], text[], bigint[], text[]) TO app_node;

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['storage_class', 'volume', 'volume_node'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY owner_all ON %I TO app_owner USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY operator_all ON %I TO app_operator USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY worker_all ON %I TO app_worker USING (true) WITH CHECK (true)', t);
    EXECUTE format('GRANT SELECT ON %I TO app_operator, app_worker', t);
  END LOOP;
END $$;
-- +goose StatementEnd
CREATE POLICY api_scope ON volume TO app_api USING (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]))
  WITH CHECK (project_id = ANY ((SELECT platform.scope('app.projects'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[]));
GRANT SELECT, INSERT, UPDATE ON volume TO app_api, app_operator;
CREATE POLICY api_all ON storage_class FOR SELECT TO app_api USING (true);
GRANT SELECT ON storage_class TO app_api;
GRANT INSERT, UPDATE ON storage_class TO app_operator;
