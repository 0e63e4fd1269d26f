-- +goose Up
-- What was ended stays ended: a node task is stored only while its operation is open. The lock is held against the
-- transaction that ends the operation, which takes the row FOR UPDATE and withdraws the tasks that are stored by then.
-- +goose StatementBegin
CREATE FUNCTION platform.hold_operation(operation_id text) RETURNS boolean
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT ended_at IS NULL FROM operation WHERE id = operation_id FOR KEY SHARE
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.hold_operation(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.hold_operation(text) TO app_api, app_operator;

-- Steps that an older build left open on operations that have ended.
UPDATE operation_step s SET state = CASE WHEN s.state = 'UNDOING' THEN 'FAILED' ELSE 'SKIPPED' END, ended_at = o.ended_at
  FROM operation o WHERE o.id = s.operation_id AND o.ended_at IS NOT NULL AND s.state IN ('PENDING', 'RUNNING', 'UNDOING');
-- +goose Down
