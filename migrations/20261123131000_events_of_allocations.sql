-- +goose Up
-- Events of allocations that no instance uses are in their project's feed, under a family of their own, so that a server of an
-- older build does not read them.
ALTER TABLE "app_instance_event" ALTER COLUMN "instance_id" DROP NOT NULL, ADD COLUMN "allocation_id" text NULL,
  ADD CONSTRAINT app_instance_event_of_one CHECK ((instance_id IS NULL) <> (allocation_id IS NULL)) NOT VALID,
  ADD CONSTRAINT app_instance_event_family CHECK ((allocation_id IS NULL) = (permission_family <> 'allocation')) NOT VALID,
  ADD FOREIGN KEY (allocation_id, tenant_id) REFERENCES allocation (id, tenant_id);
CREATE UNIQUE INDEX "event_allocation_id_seq" ON "app_instance_event" ("allocation_id", "seq") WHERE (allocation_id IS NOT NULL);
-- Placed as an instance's are: no earlier than the one before it, within a generation.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.place_event() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  NEW.xid := greatest(pg_current_xact_id()::text::bigint, (SELECT e.xid FROM app_instance_event e
    WHERE (e.instance_id = NEW.instance_id OR e.allocation_id = NEW.allocation_id) AND e.seq = NEW.seq - 1 AND e.generation = NEW.generation));
  RETURN NEW;
END $$;
-- +goose StatementEnd
-- +goose Down
