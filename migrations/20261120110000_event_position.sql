-- +goose Up
-- The order of events within a transaction. Ent's tables use it as a default, so it comes first.
CREATE SEQUENCE event_position CACHE 1;
