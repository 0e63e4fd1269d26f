-- +goose Up
-- What a look of the billing workers has considered: everything that was committed before the mark. One row.
CREATE TABLE billing_look (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  generation bigint NOT NULL,
  watermark xid8 NOT NULL,
  looked_at timestamptz NOT NULL                     -- what ends later was considered up to here
);
ALTER TABLE billing_look ENABLE ROW LEVEL SECURITY;
ALTER TABLE billing_look FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON billing_look TO app_owner USING (true) WITH CHECK (true);
CREATE POLICY worker_all ON billing_look TO app_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE ON billing_look TO app_worker;

-- Usage since a look is found by its commits: records are only ever added, so that their transactions rise with their place.
-- An index of blocks costs next to nothing to write; there is none for transactions as such.
CREATE INDEX usage_record_recorded ON usage_record USING brin (recorded_generation, (recorded_xid::text::bigint)) WITH (autosummarize = on);
