-- +goose Up
-- Members have addresses of their own, from one pool of the installation, and ranges from another. Both are given
-- in the transaction that seats a member, whichever verb that is, and are free again when the member is REMOVED.
CREATE TABLE platform.member_pool (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  addresses cidr NOT NULL CHECK (family(addresses) = 4 AND masklen(addresses) BETWEEN 8 AND 29),
  ranges cidr NOT NULL CHECK (family(ranges) = 4 AND masklen(ranges) BETWEEN 8 AND 24),
  CHECK (NOT addresses && ranges)
);
INSERT INTO platform.member_pool (addresses, ranges) VALUES ('100.64.0.0/11', '100.96.0.0/11');
CREATE TABLE platform.member_range (
  member_id text NOT NULL,
  name text NOT NULL,
  cidr cidr NOT NULL,
  PRIMARY KEY (member_id, name),
  EXCLUDE USING gist (cidr inet_ops WITH &&)
);
ALTER TABLE platform.member_pool ENABLE ROW LEVEL SECURITY;
ALTER TABLE platform.member_pool FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON platform.member_pool TO app_owner USING (true) WITH CHECK (true);
ALTER TABLE platform.member_range ENABLE ROW LEVEL SECURITY;
ALTER TABLE platform.member_range FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON platform.member_range TO app_owner USING (true) WITH CHECK (true);
-- An address comes round again as late as can be: whoever remembers a member that is gone meets nobody.
CREATE SEQUENCE platform.member_address_turn MINVALUE 0 CYCLE;
CREATE SEQUENCE platform.member_range_turn MINVALUE 0 CYCLE;
REVOKE ALL ON platform.member_pool, platform.member_range FROM PUBLIC;
REVOKE ALL ON SEQUENCE platform.member_address_turn, platform.member_range_turn FROM PUBLIC;

-- Whether a node gives its members networks of their own, as its agent reports it among its walls. A node whose
-- agent has never reported them does not.
-- +goose StatementBegin
CREATE FUNCTION platform.networked(n compute_node) RETURNS boolean LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT coalesce(jsonb_typeof(v.walls) = 'object' AND NOT coalesce(v.walls -> 'gaps' @> '[{"wall": "NETWORK"}]', false), false)
  FROM (SELECT to_jsonb(n) -> 'walls' AS walls) v
$$;
-- +goose StatementEnd

-- The next address that no member has.
-- +goose StatementBegin
CREATE FUNCTION platform.free_address() RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  pool cidr := (SELECT addresses FROM platform.member_pool);
  size bigint := (1::bigint << (32 - masklen(pool))) - 2;
  candidate text;
BEGIN
  FOR tried IN 1 .. size LOOP
    candidate := host(host(network(pool))::inet + 1 + nextval('platform.member_address_turn') % size);
    IF NOT EXISTS (SELECT FROM member WHERE address = candidate AND status <> 'REMOVED') THEN
      RETURN candidate;
    END IF;
  END LOOP;
  RAISE EXCEPTION 'no address is free in %', pool USING ERRCODE = 'GP507';
END $$;
-- +goose StatementEnd

-- Takes the ranges that the member's manifest declares for its component, each from the ranges' pool.
-- +goose StatementBegin
CREATE FUNCTION platform.take_ranges(of_member text, of_instance text, of_component text) RETURNS jsonb LANGUAGE plpgsql VOLATILE
  SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  pool cidr := (SELECT ranges FROM platform.member_pool);
  declared jsonb;
  wanted jsonb;
  count bigint;
  candidate cidr;
  given jsonb := '[]';
BEGIN
  SELECT convert_from(m.document, 'UTF8')::jsonb -> 'network' -> 'ranges' INTO declared
    FROM instance i JOIN manifest m ON m.id = i.manifest_id WHERE i.id = of_instance;
  IF declared IS NULL OR jsonb_typeof(declared) <> 'array' THEN RETURN NULL; END IF;
  FOR wanted IN SELECT value FROM jsonb_array_elements(declared) LOOP
    CONTINUE WHEN wanted ? 'componentKey' AND wanted ->> 'componentKey' <> of_component;
    count := 1::bigint << greatest((wanted ->> 'bits')::int - masklen(pool), 0);
    FOR tried IN 1 .. count + 1 LOOP
      IF tried > count THEN
        RAISE EXCEPTION 'no range of % bits is free in %', wanted ->> 'bits', pool USING ERRCODE = 'GP507';
      END IF;
      candidate := set_masklen(host(network(pool))::inet + (nextval('platform.member_range_turn') % count) * (1::bigint << (32 - (wanted ->> 'bits')::int)),
        (wanted ->> 'bits')::int)::cidr;
      BEGIN
        INSERT INTO platform.member_range (member_id, name, cidr) VALUES (of_member, wanted ->> 'name', candidate);
        EXIT;
      EXCEPTION WHEN exclusion_violation THEN NULL;
      END;
    END LOOP;
    given := given || jsonb_build_array(jsonb_build_object('name', wanted ->> 'name', 'cidr', text(candidate)));
  END LOOP;
  RETURN CASE WHEN given <> '[]' THEN given END;
END $$;
-- +goose StatementEnd

-- A member that comes to a node with networks gets its address there, and keeps it for as long as it is.
-- +goose StatementBegin
CREATE FUNCTION platform.give_network() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  NEW.address := ''; -- a writer names none: it would learn which are taken
  NEW.ranges := NULL;
  IF EXISTS (SELECT FROM compute_node n WHERE n.id = NEW.node_id AND platform.networked(n)) THEN
    NEW.address := platform.free_address();
    NEW.ranges := platform.take_ranges(NEW.id, NEW.instance_id, NEW.component_key);
  END IF;
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER give_network_seated BEFORE INSERT ON member FOR EACH ROW
  EXECUTE FUNCTION platform.give_network();
CREATE TRIGGER give_network_bound BEFORE UPDATE OF node_id ON member FOR EACH ROW
  WHEN (NEW.node_id IS NOT NULL AND OLD.address = '' AND NEW.status <> 'REMOVED') EXECUTE FUNCTION platform.give_network();

-- What was given stays: no statement of a login role sets it.
-- +goose StatementBegin
CREATE FUNCTION platform.keep_network() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.address := OLD.address;
  NEW.ranges := OLD.ranges;
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER a_keep_network BEFORE UPDATE OF address, ranges ON member FOR EACH ROW EXECUTE FUNCTION platform.keep_network();

-- +goose StatementBegin
CREATE FUNCTION platform.free_ranges() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  DELETE FROM platform.member_range WHERE member_id = NEW.id;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER free_ranges AFTER UPDATE OF status ON member FOR EACH ROW WHEN (NEW.status = 'REMOVED' AND NEW.ranges IS NOT NULL)
  EXECUTE FUNCTION platform.free_ranges();

-- A node that learns to give networks gives them to the members that it has: their sandboxes of before end with
-- the agent's next version.
-- +goose StatementBegin
CREATE FUNCTION platform.network_node() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF platform.networked(NEW) AND NOT platform.networked(OLD) THEN
    UPDATE member SET node_id = node_id WHERE node_id = NEW.id AND address = '' AND status <> 'REMOVED';
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER network_node AFTER UPDATE ON compute_node FOR EACH ROW WHEN (to_jsonb(NEW) -> 'walls' IS DISTINCT FROM to_jsonb(OLD) -> 'walls')
  EXECUTE FUNCTION platform.network_node();

-- What the calling node's agent needs of the network: see domain/nodenet. Null for a caller that is no node.
-- +goose StatementBegin
CREATE FUNCTION platform.node_network() RETURNS jsonb LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH me AS MATERIALIZED (SELECT n.id FROM compute_node n WHERE n.id = (SELECT (platform.scope('app.node'))[1])),
    here AS MATERIALIZED (SELECT DISTINCT m.instance_id AS id FROM member m JOIN me ON m.node_id = me.id WHERE m.status <> 'REMOVED'),
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
      FROM member m JOIN seen ON seen.id = m.instance_id JOIN compute_node n ON n.id = m.node_id WHERE m.status <> 'REMOVED')
  SELECT jsonb_build_object(
    'pools', (SELECT jsonb_build_array(text(addresses), text(ranges)) FROM platform.member_pool),
    'nodes', (SELECT coalesce(jsonb_agg(n.address ORDER BY n.address), '[]') FROM compute_node n WHERE n.status <> 'RETIRED'),
    'instances', (SELECT coalesce(jsonb_agg(jsonb_build_object('id', seen.id,
        'reaches', (SELECT coalesce(jsonb_agg(s.host ORDER BY s.host), '[]') FROM shared s WHERE s.guest = seen.id),
        'members', (SELECT coalesce(jsonb_agg(l.member ORDER BY l.id), '[]') FROM live l WHERE l.instance_id = seen.id)) ORDER BY seen.id), '[]') FROM seen))
  FROM me
$$;
-- +goose StatementEnd

-- Sets the pools of the installation; refused while a member has an address or a range outside of them.
-- +goose StatementBegin
CREATE FUNCTION platform.set_member_pool(wanted cidr, wanted_ranges cidr) RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = public, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM platform.member_pool WHERE addresses = wanted AND ranges = wanted_ranges) THEN RETURN; END IF;
  IF EXISTS (SELECT FROM member WHERE address <> '' AND status <> 'REMOVED' AND NOT address::inet << wanted)
    OR EXISTS (SELECT FROM platform.member_range r WHERE NOT r.cidr <<= wanted_ranges) THEN
    RAISE EXCEPTION 'members have addresses outside of % and %: remove them first, or give pools that hold them', wanted, wanted_ranges
      USING ERRCODE = 'GP508';
  END IF;
  UPDATE platform.member_pool SET addresses = wanted, ranges = wanted_ranges;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION platform.free_address(), platform.take_ranges(text, text, text), platform.give_network(), platform.free_ranges(),
  platform.network_node(), platform.node_network(), platform.set_member_pool(cidr, cidr) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform.node_network() TO app_node, app_api, app_operator;
