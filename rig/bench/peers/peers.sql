-- The platform's peers read the bench's own rows through views of the same shape, without a caller and without row-level
-- security: a view reads as its owner, an administrator. PostgreSQL plans such a view as the table itself. The comments are
-- what PostGraphile takes keys and relations from, since a view has none of its own.
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'app_peer') THEN
    CREATE ROLE app_peer LOGIN NOBYPASSRLS NOCREATEDB NOCREATEROLE NOINHERIT;
  END IF;
END $$;
SET LOCAL client_min_messages = warning;
DROP SCHEMA IF EXISTS peers CASCADE;
CREATE SCHEMA peers;
GRANT USAGE ON SCHEMA peers TO app_peer;
CREATE VIEW peers.instance AS SELECT * FROM public.instance;
CREATE VIEW peers.member AS SELECT * FROM public.member;
CREATE VIEW peers.operation AS SELECT * FROM public.operation;
CREATE VIEW peers.operation_step AS SELECT * FROM public.operation_step;
CREATE VIEW peers.app_instance_event AS SELECT * FROM public.app_instance_event;
GRANT SELECT ON ALL TABLES IN SCHEMA peers TO app_peer;
GRANT UPDATE ON peers.instance TO app_peer;
COMMENT ON VIEW peers.instance IS E'@primaryKey id\n@foreignKey (last_operation_id) references peers.operation (id)|@fieldName lastOperation';
COMMENT ON VIEW peers.member IS E'@primaryKey id\n@foreignKey (instance_id) references peers.instance (id)|@foreignFieldName members';
COMMENT ON VIEW peers.operation IS E'@primaryKey id';
COMMENT ON VIEW peers.operation_step IS
  E'@primaryKey id\n@foreignKey (operation_id) references peers.operation (id)|@foreignFieldName steps';
COMMENT ON VIEW peers.app_instance_event IS
  E'@primaryKey id\n@foreignKey (instance_id) references peers.instance (id)|@foreignFieldName events';
