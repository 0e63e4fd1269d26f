-- +goose Up
-- What the workers look for every few seconds is rare, and the tables are not: each look read one of them whole.
CREATE INDEX "instance_unserved" ON "instance" ("unserved_at", "id") WHERE ((unserved_at IS NOT NULL) AND (released_at IS NULL));
CREATE INDEX "compute_node_away" ON "compute_node" ("id") WHERE (((status)::text = 'OFFLINE'::text) OR ((status)::text = 'RETIRED'::text));
CREATE INDEX "compute_node_drained" ON "compute_node" ("id") WHERE (drain IS NOT NULL);
CREATE INDEX "compute_node_lost" ON "compute_node" ("id") WHERE lost;
-- +goose Down
