-- +goose Up
-- Generations of the database. Transaction numbers, and all that was written after a moment, mean something on one server's
-- one past alone: a dump that is restored, a recovery to a point in time and the promotion of a replica each begin another.
-- A generation is known by what PostgreSQL says of itself: the system's identifier, the timeline and the database.

CREATE TABLE platform.generation_log (
  number            bigint PRIMARY KEY, -- rises; in microseconds since 1970, so that no two pasts give out the same
  system_identifier bigint NOT NULL,
  timeline          bigint NOT NULL,
  database          bigint NOT NULL,
  began_at          timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE platform.generation_log IS 'Which servers and timelines this database has lived on, the present one last.';

-- What the server says of itself. It fails on a standby, which has no generation of its own.
-- +goose StatementBegin
CREATE FUNCTION platform.whereabouts(OUT system_identifier bigint, OUT timeline bigint, OUT database bigint)
  LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  -- The control file's timeline is that of the last checkpoint, which comes after a promotion.
  SELECT c.system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint, d.oid::bigint
  FROM pg_control_system() c, pg_database d WHERE d.datname = current_database()
$$;
-- +goose StatementEnd

-- The present generation.
-- +goose StatementBegin
CREATE FUNCTION platform.generation() RETURNS bigint
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT max(g.number) FROM platform.generation_log g $$;
-- +goose StatementEnd

-- Each connection's first call: the present generation, and whether this call began it. Nothing is written by any connection
-- of the platform before it, so that what is written in a generation carries its number. Who takes part in the one before
-- has committed by then: the lock waits for it.
-- +goose StatementBegin
CREATE FUNCTION platform.arrive(OUT generation bigint, OUT began boolean)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE here record; last platform.generation_log;
BEGIN
  SELECT * INTO here FROM platform.whereabouts();
  FOR tries IN 1..2 LOOP
    SELECT * INTO last FROM platform.generation_log ORDER BY number DESC LIMIT 1;
    IF (last.system_identifier, last.timeline, last.database) = (here.system_identifier, here.timeline, here.database) THEN
      generation := last.number; began := false;
      RETURN;
    END IF;
    LOCK TABLE app_instance_event IN SHARE ROW EXCLUSIVE MODE;
  END LOOP;
  INSERT INTO platform.generation_log (number, system_identifier, timeline, database)
    VALUES (greatest(last.number + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), here.system_identifier, here.timeline, here.database)
    RETURNING number INTO generation;
  -- Their agents could not beat while there was no database: they get one lease to do it in.
  UPDATE compute_node SET last_seen_at = now() WHERE status = 'ONLINE';
  began := true;
END $$;
-- +goose StatementEnd

ALTER TABLE platform.generation_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE platform.generation_log FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON platform.generation_log TO app_owner USING (true) WITH CHECK (true);
INSERT INTO platform.generation_log (number, system_identifier, timeline, database) SELECT 1, w.* FROM platform.whereabouts() w;

-- What was written before is of the first generation, without a rewrite of the table; what is written from now on of the present one.
ALTER TABLE "app_instance_event" ADD COLUMN "generation" bigint NOT NULL DEFAULT 1;
ALTER TABLE "app_instance_event" ALTER COLUMN "generation" SET DEFAULT platform.generation();
CREATE INDEX "event_project_id_generation_xid_position" ON "app_instance_event" ("project_id", "generation", "xid", "position");
DROP INDEX "event_project_id_xid_position";

-- Whether a place in a project's feed is of this database's own past: the beginning, a mark between events, or an event that
-- is still there. system is the server of a cursor from before generations, 0 for others.
-- +goose StatementBegin
CREATE FUNCTION platform.kept(project text, of_generation bigint, of_xid bigint, of_position bigint, system bigint) RETURNS boolean
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT CASE
    WHEN of_generation = 0 THEN true
    WHEN system <> 0 AND NOT EXISTS (SELECT FROM platform.generation_log g WHERE g.number = of_generation AND g.system_identifier = system) THEN false
    WHEN of_generation = platform.generation() THEN true
    WHEN NOT EXISTS (SELECT FROM platform.generation_log g WHERE g.number = of_generation) THEN false
    WHEN of_position = 9223372036854775807 OR (of_xid = 0 AND of_position = 0) THEN true
    ELSE EXISTS (SELECT FROM app_instance_event e WHERE e.project_id = project AND e.generation = of_generation AND e.xid = of_xid
      AND e."position" = of_position)
  END
$$;
-- +goose StatementEnd

-- When the present generation began; null for the first, before which nothing was lost.
-- +goose StatementBegin
CREATE FUNCTION platform.began() RETURNS timestamptz LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT max(g.began_at) FROM platform.generation_log g HAVING count(*) > 1
$$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION platform.whereabouts(), platform.generation(), platform.arrive(), platform.began(), platform.kept(text, bigint, bigint, bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.generation(), platform.arrive(), platform.began(), platform.kept(text, bigint, bigint, bigint, bigint)
  TO app_api, app_operator, app_node, app_worker;

-- As before, but the order follows the event before it only within a generation.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.tell_shared(share text, event_id text, kind text, words text, details jsonb, correlation text, at timestamptz)
  RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE i instance; number bigint;
BEGIN
  IF kind NOT LIKE 'apps.instance.control\_plane\_%' AND kind <> 'apps.instance.action_invoked' THEN
    RAISE EXCEPTION 'a share does not tell of %', kind USING ERRCODE = 'insufficient_privilege';
  END IF;
  UPDATE instance SET revision = revision + 1, updated_at = at WHERE id = (SELECT s.instance_id FROM control_plane_share s
    WHERE s.id = share AND (platform.reaches_project(s.project_id, s.tenant_id) OR platform.reaches_project(s.owner_project_id, s.tenant_id)))
    RETURNING * INTO i;
  IF NOT FOUND THEN RETURN NULL; END IF;
  number := i.revision;
  INSERT INTO app_instance_event (id, tenant_id, project_id, instance_id, seq, type, app_slug, permission_family, message, payload,
    correlation_id, occurred_at, xid) VALUES (event_id, i.tenant_id, i.project_id, i.id, number, kind, i.app_slug, i.permission_family,
    words, details, correlation, at, GREATEST(pg_current_xact_id()::text::bigint,
      (SELECT e.xid FROM app_instance_event e WHERE e.instance_id = i.id AND e.seq = number - 1 AND e.generation = platform.generation())));
  RETURN number;
END $$;
-- +goose StatementEnd
