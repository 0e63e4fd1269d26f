-- +goose Up
-- A node's members from before it had networks get theirs with its next heartbeat, before that locks the node: members are
-- locked before their nodes everywhere. A member that is locked right now gets its address with the heartbeat after.
DROP TRIGGER network_node ON compute_node;
DROP FUNCTION platform.network_node();
-- +goose StatementBegin
CREATE FUNCTION platform.seat_network() RETURNS void LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE member SET node_id = node_id WHERE id IN (
    SELECT m.id FROM member m JOIN compute_node n ON n.id = m.node_id
    WHERE n.id = (SELECT (platform.scope('app.node'))[1]) AND platform.networked(n) AND m.address = '' AND m.status <> 'REMOVED'
    ORDER BY m.id FOR UPDATE OF m SKIP LOCKED)
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.seat_network() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.seat_network() TO app_node;
