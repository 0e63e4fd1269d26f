-- +goose Up
-- A worker that replaces a member by itself keeps the instance's volumes from being deleted until it has decided: a row
-- lock, for which PostgreSQL demands the right to update a column. No worker writes this one. See docs/adr/0119.
GRANT UPDATE (created_by) ON volume TO app_worker;
