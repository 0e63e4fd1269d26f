-- +goose Up
-- One-time secrets and sessions that have been over for a day are forgotten. The workers may not see
-- these tables, so a function does it for them; it answers how many rows went, at most 3,000 at once.
-- +goose StatementBegin
CREATE FUNCTION platform.forget_secrets() RETURNS bigint
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH codes AS (
    DELETE FROM login_code WHERE id IN (
      SELECT id FROM login_code WHERE expires_at < now() - interval '1 day' LIMIT 1000) RETURNING id
  ), enrolments AS (
    DELETE FROM node_enrolment WHERE id IN (
      SELECT id FROM node_enrolment WHERE used_at IS NULL AND expires_at < now() - interval '1 day' LIMIT 1000) RETURNING id
  ), sessions AS (
    DELETE FROM session WHERE id IN (
      SELECT id FROM session WHERE expires_at < now() - interval '1 day' LIMIT 1000) RETURNING id
  )
  SELECT (SELECT count(*) FROM codes) + (SELECT count(*) FROM enrolments) + (SELECT count(*) FROM sessions)
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.forget_secrets() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.forget_secrets() TO app_worker;
