-- +goose Up
-- A build from before generations does not ask where the database is. When its worker was the first on a server that a dump
-- was restored on, its events carried the number of the generation before, with the new server's transaction numbers: they
-- lay behind the cursors of those who had read on, who never got them. So each session of whatever build arrives before it
-- first writes an instance, which every event counts on. The setting lives as long as the session, which is to one server
-- on one timeline; to set it by hand hides nothing of another's.
-- +goose StatementBegin
CREATE FUNCTION platform.arrive_once() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF coalesce(current_setting('platform.arrived', true), '') = '' THEN
    PERFORM platform.arrive();
    PERFORM set_config('platform.arrived', 'yes', false);
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.arrive_once() FROM PUBLIC;
CREATE TRIGGER arrive_once BEFORE INSERT OR UPDATE ON "instance" FOR EACH STATEMENT EXECUTE FUNCTION platform.arrive_once();
-- +goose Down
