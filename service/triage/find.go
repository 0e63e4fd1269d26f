package triage

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// maxOthers bounds the other operations of a correlation id.
const maxOthers = 20

// findSQL finds what an id is about: operations, the one that is meant first, with the correlation id and the
// instance. There is always one row. A correlation id finds its operations by the audit's entries, which have an
// index of it: every accepted change has one, with the object that it is about. A request that created no operation is
// about the instance that its entry names. What is not an object of a kind below is found by the newest entry that the
// audit has of it. Rows that were written without a correlation id are not related to each other.
const findSQL = `WITH subject AS (
		SELECT o.id AS operation_id, NULL::text AS correlation_id, NULL::text AS instance_id FROM operation o WHERE o.id = $1
		UNION ALL SELECT i.last_operation_id, NULL, i.id FROM instance i WHERE i.id = $1
		UNION ALL SELECT coalesce(m.last_operation_id, i.last_operation_id), NULL, m.instance_id
			FROM member m JOIN instance i ON i.id = m.instance_id WHERE m.id = $1
		UNION ALL SELECT coalesce(l.release_operation_id, i.last_operation_id, l.created_by_operation_id), NULL, i.id
			FROM allocation l LEFT JOIN instance i ON i.id = l.instance_id WHERE l.id = $1
		UNION ALL SELECT t.operation_id, nullif(t.correlation_id, ''), NULL FROM node_task t WHERE t.id = $1
		UNION ALL SELECT e.operation_id, nullif(e.correlation_id, ''), NULL FROM app_instance_event e WHERE e.id = $1
		UNION ALL SELECT NULL, nullif(a.correlation_id, ''), NULL FROM audit_entry a WHERE a.id = $1 LIMIT 1
	), correlated AS (SELECT coalesce(
			(SELECT nullif(o.correlation_id, '') FROM operation o JOIN subject s ON s.operation_id = o.id),
			(SELECT s.correlation_id FROM subject s),
			(SELECT nullif(a.correlation_id, '') FROM audit_entry a WHERE a.object_id = $1 ORDER BY a.id DESC LIMIT 1), $1) AS id
	), touched AS (SELECT DISTINCT a.object_id AS id FROM (SELECT a.object_id FROM audit_entry a
			WHERE a.correlation_id = (SELECT id FROM correlated) AND a.allowed AND a.object_id <> ''
			ORDER BY a.id DESC LIMIT 100) a
	), found AS (
		SELECT s.operation_id AS id FROM subject s WHERE s.operation_id IS NOT NULL
		UNION SELECT o.id FROM (
			SELECT o.id, o.correlation_id FROM touched t JOIN operation o ON o.id = t.id
			UNION SELECT o.id, o.correlation_id FROM touched t JOIN operation o ON o.instance_id = t.id
			UNION SELECT o.id, o.correlation_id FROM touched t JOIN member m ON m.id = t.id
				JOIN operation o ON o.instance_id = m.instance_id
			UNION SELECT o.id, o.correlation_id FROM touched t JOIN allocation l ON l.id = t.id
				JOIN operation o ON o.id = l.release_operation_id) o
		WHERE o.correlation_id = (SELECT id FROM correlated)
		ORDER BY 1 DESC LIMIT 21
	), acted AS (
		SELECT coalesce(i.id, m.instance_id) AS id FROM (SELECT a.object_id FROM audit_entry a
			WHERE a.correlation_id = (SELECT id FROM correlated) AND a.actor_kind <> 'OPERATION' ORDER BY a.id DESC LIMIT 1) a
		LEFT JOIN instance i ON i.id = a.object_id LEFT JOIN member m ON m.id = a.object_id
		WHERE NOT EXISTS (SELECT FROM found)
	) SELECT (SELECT id FROM correlated), coalesce((SELECT s.instance_id FROM subject s), (SELECT id FROM acted)),
		(SELECT array_agg(f.id ORDER BY coalesce(f.id = (SELECT s.operation_id FROM subject s), false) DESC, f.id DESC)
			FROM found f)`

// subject is what an id is about.
type subject struct {
	// Correlation is the correlation id; the id itself where nothing is known of it.
	Correlation string
	// Instance is set where the report was requested of an instance, of a part of one, or of a request about one that
	// created no operation.
	Instance *ids.ID
	// Operations are those of the correlation id, the one that is meant first.
	Operations []ids.ID
}

// operation is the one that is meant; empty for none.
func (s *subject) operation() ids.ID {
	if len(s.Operations) == 0 {
		return ""
	}
	return s.Operations[0]
}

// others are the rest, at most maxOthers.
func (s *subject) others() []ids.ID {
	if len(s.Operations) == 0 {
		return []ids.ID{}
	}
	rest := s.Operations[1:]
	return rest[:min(len(rest), maxOthers)]
}

// find returns what an id is about.
func (s *Service) find(ctx context.Context, about string) (*subject, error) {
	var found *subject
	if _, err := s.DB.Read(ctx, tx.Row(&found, pgx.RowToAddrOfStructByPos[subject], findSQL, about)); err != nil {
		return nil, err
	}
	return found, nil
}
