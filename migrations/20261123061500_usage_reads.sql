-- +goose Up
-- Until when the agent of an allocation's node has proved that it runs, to a caller that sees the allocation.
CREATE FUNCTION platform.node_proved_to(node text) RETURNS timestamptz
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$ SELECT p.proved_at FROM node_proof p WHERE p.node_id = node $$;
CREATE FUNCTION platform.proved_to(allocation text) RETURNS timestamptz
  LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$ SELECT platform.node_proved_to(a.node_id) FROM allocation a WHERE a.id = allocation $$;
REVOKE ALL ON FUNCTION platform.node_proved_to(text), platform.proved_to(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.node_proved_to(text), platform.proved_to(text) TO app_api, app_operator;
