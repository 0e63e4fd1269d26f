-- +goose Up
-- PostgreSQL plans the statements of a function in SQL at each call, unless it can put them into the caller's statement;
-- those of one in PL/pgSQL once a connection. Each launch calls these two. What they answer, and who may ask, is as before.

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.hold_manifest(wanted text) RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  held text;
BEGIN
  SELECT stage INTO held FROM manifest WHERE id = wanted FOR SHARE;
  RETURN held;
END $$;
-- +goose StatementEnd

CREATE OR REPLACE FUNCTION platform.networked(n compute_node) RETURNS boolean LANGUAGE sql STABLE
RETURN coalesce(jsonb_typeof(n.walls) = 'object' AND NOT coalesce(n.walls -> 'gaps' @> '[{"wall": "NETWORK"}]', false), false);
-- +goose Down
