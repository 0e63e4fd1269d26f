-- +goose Up
-- Whether workers live, for callers that may not see the workers' rows: a sign of life and its moment,
-- and nothing of who or where they are. A process that stops takes its row away, so that nothing is
-- known of it then.
-- +goose StatementBegin
CREATE FUNCTION platform.workers_heard(OUT alive boolean, OUT heard timestamptz)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT coalesce(max(heartbeat_at) > now() - interval '10 seconds', false), max(heartbeat_at) FROM worker_process
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION platform.worker_heard(worker text, OUT alive boolean, OUT heard timestamptz)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT coalesce(max(heartbeat_at) > now() - interval '10 seconds', false), max(heartbeat_at) FROM worker_process WHERE id = worker
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.workers_heard(), platform.worker_heard(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.workers_heard(), platform.worker_heard(text) TO app_api, app_operator;

-- Keys of service accounts that ended a month ago, and credentials of nodes that ended a day ago, are
-- forgotten. The workers may not see these tables, so a function does it for them; it answers how many
-- rows went, at most 2,000 at once.
-- +goose StatementBegin
CREATE FUNCTION platform.forget_credentials() RETURNS bigint
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH keys AS (
    DELETE FROM service_account_key WHERE id IN (
      SELECT id FROM service_account_key WHERE expires_at < now() - interval '30 days' LIMIT 1000) RETURNING id
  ), credentials AS (
    DELETE FROM node_credential WHERE id IN (
      SELECT id FROM node_credential WHERE expires_at < now() - interval '1 day' LIMIT 1000) RETURNING id
  )
  SELECT (SELECT count(*) FROM keys) + (SELECT count(*) FROM credentials)
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.forget_credentials() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.forget_credentials() TO app_worker;
