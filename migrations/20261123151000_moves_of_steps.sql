-- +goose Up
-- No code takes back a step that failed: what it may have done is taken back by the steps that undo. The move promised it.
DELETE FROM lifecycle_transition WHERE machine = 'operation_step' AND from_state = 'FAILED' AND to_state = 'UNDOING';
-- +goose Down
