-- +goose Up
-- The floor of workers: a claim says that it takes only what its build knows. One that does not comes from a build that fails
-- what it does not know, and is refused.
-- +goose StatementBegin
CREATE FUNCTION platform.refuse_old_claim() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'this worker is older than the floor of the database: it would fail operations that it does not know'
    USING ERRCODE = 'GP509', HINT = 'stop it and start a newer build';
END $$;
-- +goose StatementEnd
CREATE TRIGGER refuse_old_claim BEFORE UPDATE OF claimed_by ON operation FOR EACH ROW
  WHEN (OLD.claimed_by IS NULL AND NEW.claimed_by IS NOT NULL AND current_user = 'app_worker'
    AND coalesce(current_setting('app.claims_known', true), '') = '')
  EXECUTE FUNCTION platform.refuse_old_claim();

-- Whether a worker that is heard begins the kind, or carries the plan on once there is one. A worker that does not tell what
-- it knows is not held against anything.
-- +goose StatementBegin
CREATE FUNCTION platform.plan_known(wanted_kind text, wanted_plan text) RETURNS boolean
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT EXISTS (SELECT FROM worker_process WHERE heartbeat_at > now() - interval '10 seconds'
    AND (kinds IS NULL OR CASE WHEN wanted_plan = '' THEN kinds ? wanted_kind ELSE plans ? wanted_plan END))
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.refuse_old_claim(), platform.plan_known(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.plan_known(text, text) TO app_api, app_operator;
-- +goose Down
