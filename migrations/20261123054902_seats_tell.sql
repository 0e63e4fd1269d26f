-- +goose Up
-- Gives addresses to members of the calling node from before it had networks, and answers whose they are: the other nodes of
-- those instances are told.
DROP FUNCTION platform.seat_network();
-- +goose StatementBegin
CREATE FUNCTION platform.seat_network() RETURNS SETOF text LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE member SET node_id = node_id WHERE id IN (
    SELECT m.id FROM member m JOIN compute_node n ON n.id = m.node_id
    WHERE n.id = (SELECT (platform.scope('app.node'))[1]) AND platform.networked(n) AND m.address = '' AND m.status <> 'REMOVED'
    ORDER BY m.id FOR UPDATE OF m SKIP LOCKED)
  RETURNING instance_id
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.seat_network() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.seat_network() TO app_node;
-- +goose Down
