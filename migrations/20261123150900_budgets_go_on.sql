-- +goose Up
-- A look at a budget reads the entries since the look before it, and not the whole month again: what was booked before a
-- mark of commits is settled, and only what came at or after it is summed. Entries carry the generation of the database
-- that they were written in, so that a mark means the same after a restore.
ALTER TABLE ledger_entry ADD COLUMN booked_generation bigint NOT NULL DEFAULT 0;
ALTER TABLE ledger_entry ALTER COLUMN booked_generation SET DEFAULT platform.generation();
COMMENT ON COLUMN ledger_entry.booked_generation IS 'That booked_xid is of; 0 for entries from before this was noted, which are before every mark.';
CREATE INDEX ledger_entry_booked ON ledger_entry (tenant_id, booked_generation, booked_xid) WHERE account = 'ACCRUED';

ALTER TABLE budget ADD COLUMN settled numeric(38,12) NOT NULL DEFAULT 0,   -- what was booked before the mark
  ADD COLUMN mark_generation bigint,                                       -- none before the first look
  ADD COLUMN mark_xid xid8;
