-- +goose Up
-- As before, but by a plan that a connection keeps: each event asks twice, and PostgreSQL plans a function in SQL anew for
-- each statement that calls it.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.generation() RETURNS bigint
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (SELECT max(g.number) FROM platform.generation_log g);
END $$;
-- +goose StatementEnd
-- +goose Down
