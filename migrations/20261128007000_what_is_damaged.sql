-- +goose Up
-- What is damaged is little of what runs, and is looked for whenever an operation ends.
CREATE INDEX "member_lost" ON "member" ("instance_id") WHERE (((status)::text = 'FAILED'::text) AND (failure IS NOT NULL));
CREATE INDEX "instance_repair_stopped" ON "instance" ("id") WHERE ((repair_stopped <> ''::text) AND (released_at IS NULL));
-- +goose Down
