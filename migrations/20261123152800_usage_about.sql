-- +goose Up
-- What a record is about, but for quantity and time, as 16 bytes of a SHA-256: a month is added up by them, where grouping by
-- fourteen columns of text was measured at twice the work. The column is derived, so that it cannot differ from the record.
-- The columns are written as literals of SQL, of which no two lists are the same text.
ALTER TABLE usage_record ADD COLUMN about bytea NOT NULL GENERATED ALWAYS AS (substring(sha256((
    quote_literal(source) || ',' || quote_literal(meter) || ',' || quote_literal(tenant_id) || ',' || quote_literal(project_id)
    || ',' || quote_literal(basis) || ',' || quote_literal(unit) || ',' || quote_literal(session)
    || ',' || quote_nullable(sku) || ',' || quote_nullable(region) || ',' || quote_nullable(borne_reason)
    || ',' || quote_nullable(app_instance_id) || ',' || quote_nullable(allocation_id) || ',' || quote_nullable(member_id)
    || ',' || quote_nullable(component_key) || ',' || quote_nullable(operation_id))::bytea) FROM 1 FOR 16)) STORED;
