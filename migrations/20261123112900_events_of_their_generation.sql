-- +goose Up
-- An event is placed no earlier than its instance's event before it, within a generation. A build from before generations
-- takes the number of the event before it whatever its generation: after a dump was restored on another server that is the
-- number of a transaction that this server has yet to reach, and so no feed showed the event, nor those of its instance that
-- followed it and took its number in turn. Such a number is put right, whoever writes it.
-- +goose StatementBegin
CREATE FUNCTION platform.place_event() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  NEW.xid := greatest(pg_current_xact_id()::text::bigint, (SELECT e.xid FROM app_instance_event e
    WHERE e.instance_id = NEW.instance_id AND e.seq = NEW.seq - 1 AND e.generation = NEW.generation));
  RETURN NEW;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.place_event() FROM PUBLIC;
CREATE TRIGGER place_event BEFORE INSERT ON "app_instance_event" FOR EACH ROW
  WHEN (NEW.xid > pg_current_xact_id()::text::bigint) EXECUTE FUNCTION platform.place_event();
-- +goose Down
