-- +goose Up
-- A manifest's document is what its publisher sent. One that is no JSON, or that PostgreSQL cannot hold, must not end a
-- read over many instances: of such a document nothing is known, which is NULL.
-- +goose StatementBegin
CREATE FUNCTION platform.names_inspections(document bytea) RETURNS boolean
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	named json;
BEGIN
	named := convert_from(document, 'UTF8')::json -> 'inspections';
	RETURN json_typeof(named) = 'array' AND json_array_length(named) > 0;
EXCEPTION WHEN data_exception THEN
	RETURN NULL;
END;
$$;
-- +goose StatementEnd
