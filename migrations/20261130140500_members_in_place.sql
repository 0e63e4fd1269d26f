-- +goose Up
-- A new version of a row needs new entries in every index of its table once a column changed that any of them is built on,
-- or that decides which rows it has. The status of a member decided that for four, so that each step of a member's life
-- wrote six indexes. Whether a member is REMOVED changes once.
DROP INDEX member_ordinal_live, member_address_live, member_node_id, member_lost;
ALTER TABLE member ADD COLUMN removed boolean NOT NULL GENERATED ALWAYS AS (status = 'REMOVED') STORED;
CREATE UNIQUE INDEX member_ordinal_live ON member (instance_id, component_key, ordinal) WHERE (NOT removed);
CREATE UNIQUE INDEX member_address_live ON member (address) WHERE ((address <> ''::text) AND (NOT removed));
CREATE INDEX member_node_id ON member (node_id) WHERE (NOT removed);
CREATE INDEX member_lost ON member (instance_id) WHERE ((failure IS NOT NULL) AND (NOT removed));

-- What goes from a node or an address to members, by these indexes. Nothing else in these functions differs.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.free_address() RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  pool cidr := (SELECT addresses FROM platform.member_pool);
  size bigint := (1::bigint << (32 - masklen(pool))) - 2;
  candidate text;
BEGIN
  FOR tried IN 1 .. size LOOP
    candidate := host(host(network(pool))::inet + 1 + nextval('platform.member_address_turn') % size);
    IF NOT EXISTS (SELECT FROM member WHERE address = candidate AND NOT removed) THEN
      RETURN candidate;
    END IF;
  END LOOP;
  RAISE EXCEPTION 'no address is free in %', pool USING ERRCODE = 'GP507';
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.seat_network() RETURNS SETOF text LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE member SET node_id = node_id WHERE id IN (
    SELECT m.id FROM member m JOIN compute_node n ON n.id = m.node_id
    WHERE n.id = (SELECT (platform.scope('app.node'))[1]) AND platform.networked(n) AND m.address = '' AND NOT m.removed
    ORDER BY m.id FOR UPDATE OF m SKIP LOCKED)
  RETURNING instance_id
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION platform.node_network() RETURNS jsonb LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH me AS MATERIALIZED (SELECT n.id FROM compute_node n WHERE n.id = (SELECT (platform.scope('app.node'))[1])),
    here AS MATERIALIZED (SELECT DISTINCT m.instance_id AS id FROM member m JOIN me ON m.node_id = me.id WHERE NOT m.removed),
    shared AS MATERIALIZED (SELECT g.id AS guest, s.instance_id AS host FROM control_plane_share s
      JOIN instance g ON g.project_id = s.project_id AND g.released_at IS NULL AND g.id <> s.instance_id
      WHERE s.status = 'ATTACHED' AND s.ended_at IS NULL AND (s.instance_id IN (SELECT id FROM here) OR g.id IN (SELECT id FROM here))),
    seen AS MATERIALIZED (SELECT id FROM here UNION SELECT guest FROM shared UNION SELECT host FROM shared),
    declared AS MATERIALIZED (SELECT seen.id, convert_from(f.document, 'UTF8')::jsonb -> 'network' -> 'endpoints' AS endpoints
      FROM seen JOIN instance i ON i.id = seen.id JOIN manifest f ON f.id = i.manifest_id),
    live AS (SELECT m.id, m.instance_id, jsonb_build_object('id', m.id, 'address', CASE WHEN m.address <> '' THEN m.address ELSE n.address END,
        'ranges', coalesce(m.ranges, '[]'), 'nodeId', n.id, 'nodeAddress', n.address,
        'open', coalesce((SELECT jsonb_agg(DISTINCT jsonb_build_object('protocol', coalesce(e ->> 'protocol', 'tcp'), 'number', e -> 'port'))
          FROM declared d, jsonb_array_elements(d.endpoints) e WHERE d.id = m.instance_id
            AND (NOT e ? 'componentKey' OR e ->> 'componentKey' = m.component_key)), '[]')) AS member
      FROM member m JOIN seen ON seen.id = m.instance_id JOIN compute_node n ON n.id = m.node_id WHERE NOT m.removed)
  SELECT jsonb_build_object(
    'pools', (SELECT jsonb_build_array(text(addresses), text(ranges)) FROM platform.member_pool),
    'nodes', (SELECT coalesce(jsonb_agg(n.address ORDER BY n.address), '[]') FROM compute_node n WHERE n.status <> 'RETIRED'),
    'instances', (SELECT coalesce(jsonb_agg(jsonb_build_object('id', seen.id,
        'reaches', (SELECT coalesce(jsonb_agg(s.host ORDER BY s.host), '[]') FROM shared s WHERE s.guest = seen.id),
        'members', (SELECT coalesce(jsonb_agg(l.member ORDER BY l.id), '[]') FROM live l WHERE l.instance_id = seen.id)) ORDER BY seen.id), '[]') FROM seen))
  FROM me
$$;
-- +goose StatementEnd
-- +goose Down
