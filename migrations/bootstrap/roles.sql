-- The database's roles: made once a server, before the first migration, by an administrator.
-- app_owner owns every object and runs migrations; the others log in and are bound by row-level
-- security. None of them bypasses it and none can see all tenants by a setting:
--   app_api       callers of one tenant or several projects
--   app_operator  callers who hold a role at platform scope
--   app_node      node agents: their own node and its tasks
--   app_worker    the workers
DO $$
DECLARE r text;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'app_owner') THEN
    BEGIN
      CREATE ROLE app_owner LOGIN NOBYPASSRLS;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- another database of this server was faster
    END;
  END IF;
  FOREACH r IN ARRAY ARRAY['app_api', 'app_operator', 'app_node', 'app_worker'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = r) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I LOGIN NOBYPASSRLS NOCREATEDB NOCREATEROLE NOINHERIT', r);
      EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
      END;
    END IF;
  END LOOP;
END $$;
