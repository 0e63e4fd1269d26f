-- +goose Up
-- Rows that are written many times in a short life: room on their page for the next version spares every index, and the
-- versions that are over must go before they slow the queue down, however large the table has grown. By default
-- PostgreSQL waits for a fifth of the table.
ALTER TABLE operation SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE operation_step SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);
ALTER TABLE instance SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
ALTER TABLE member SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);

-- +goose Down
ALTER TABLE member RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
ALTER TABLE instance RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
ALTER TABLE operation_step RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
ALTER TABLE operation RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
