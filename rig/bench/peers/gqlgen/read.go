package gqlgen

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/rig/bench/peers/gqlgen/generated"
	"github.com/gpuaas/app-platform/service/kit/page"
)

// The pages of the bench's documents.
const (
	memberPage = 50
	eventPage  = 20
)

// Instance returns an instance with everything that the document selects of it.
func (q query) Instance(ctx context.Context, id string) (*generated.Instance, error) {
	i, o, found := &generated.Instance{}, &generated.Operation{Steps: []*generated.Step{}}, false
	batch := &pgx.Batch{}
	batch.Queue(`SELECT id, name, project_id, app_slug, app_version, status, health, health_message, revision, config,
		bound_capacity_shape, runtime_backend, correlation_id, created_at, updated_at, roles FROM instance
		WHERE id = $1`, id).Query(each(func(rows pgx.Rows) error {
		found = true
		return rows.Scan(&i.ID, &i.Name, &i.ProjectID, &i.AppSlug, &i.AppVersion, &i.Status, &i.Health,
			&i.HealthMessage,
			&i.Revision, &i.Config, &i.BoundCapacityShape, &i.RuntimeBackend, &i.CorrelationID, &i.CreatedAt,
			&i.UpdatedAt,
			&i.Roles)
	}))
	queueMembers(batch, id, i)
	batch.Queue(`SELECT o.id, o.kind, o.state, o.phase, o.percent, o.message, o.created_at, o.started_at, o.ended_at
		FROM operation o JOIN instance i ON i.last_operation_id = o.id WHERE i.id = $1`, id).
		Query(each(func(rows pgx.Rows) error {
			i.LastOperation = o
			return rows.Scan(&o.ID, &o.Kind, &o.State, &o.Phase, &o.Percent, &o.Message, &o.CreatedAt, &o.StartedAt,
				&o.EndedAt)
		}))
	batch.Queue(`SELECT s.name, s.state, s.attempt, s.message, s.started_at, s.ended_at FROM operation_step s
		JOIN instance i ON i.last_operation_id = s.operation_id WHERE i.id = $1 ORDER BY s.ordinal`, id).
		Query(each(func(rows pgx.Rows) error {
			s := &generated.Step{}
			o.Steps = append(o.Steps, s)
			return rows.Scan(&s.Name, &s.State, &s.Attempt, &s.Message, &s.StartedAt, &s.EndedAt)
		}))
	queueEvents(batch, id, i)
	if err := q.pool.SendBatch(ctx, batch).Close(); err != nil || !found {
		return nil, err
	}
	return i, nil
}

func queueMembers(batch *pgx.Batch, id string, i *generated.Instance) {
	all := &generated.MemberConnection{Edges: []*generated.MemberEdge{}, PageInfo: &generated.PageInfo{}}
	i.Members = all
	batch.Queue(`SELECT id, component_key, ordinal, status, cordoned, health, health_message, updated_at FROM member
		WHERE instance_id = $1 ORDER BY id LIMIT $2`, id, memberPage+1).Query(each(func(rows pgx.Rows) error {
		if len(all.Edges) == memberPage {
			all.PageInfo.HasNextPage = true
			return nil
		}
		m := &generated.Member{}
		err := rows.Scan(&m.ID, &m.ComponentKey, &m.Index, &m.Status, &m.Cordoned, &m.Health, &m.HealthMessage,
			&m.UpdatedAt)
		edge := &generated.MemberEdge{Cursor: page.Cursor("members", m.ID), Node: m}
		all.Edges, all.PageInfo.EndCursor = append(all.Edges, edge), &edge.Cursor
		return err
	}))
}

func queueEvents(batch *pgx.Batch, id string, i *generated.Instance) {
	all := &generated.EventConnection{Edges: []*generated.EventEdge{}, PageInfo: &generated.PageInfo{}}
	i.Events = all
	batch.Queue(`SELECT id, seq, type, message, payload, operation_id, occurred_at, generation FROM app_instance_event
		WHERE instance_id = $1 AND seq > 0 ORDER BY seq
		LIMIT $2`, id, eventPage+1).Query(each(func(rows pgx.Rows) error {
		if len(all.Edges) == eventPage {
			all.PageInfo.HasNextPage = true
			return nil
		}
		e, generation := &generated.Event{}, int64(0)
		err := rows.Scan(&e.ID, &e.Seq, &e.Type, &e.Message, &e.Payload, &e.OperationID, &e.OccurredAt, &generation)
		e.Cursor = "s" + strconv.Itoa(e.Seq) + "." + strconv.FormatInt(generation, 36)
		all.Edges, all.PageInfo.EndCursor = append(all.Edges, &generated.EventEdge{Node: e}), &e.Cursor
		return err
	}))
}

// Instances returns a project's newest instances, each with its last operation, by one statement.
func (q query) Instances(ctx context.Context, project string, first int) (*generated.InstanceConnection, error) {
	rows, err := q.pool.Query(ctx, `SELECT i.id, i.name, i.app_slug, i.app_version, i.status, i.health,
		i.health_message,
		i.smoke, i.created_at, i.updated_at, i.released_at, i.roles, o.id, o.kind, o.state, o.percent, o.message
		FROM instance i LEFT JOIN operation o ON o.id = i.last_operation_id
		WHERE i.project_id = $1 ORDER BY i.id DESC LIMIT $2`, project, first+1)
	if err != nil {
		return nil, err
	}
	all := &generated.InstanceConnection{Edges: []*generated.InstanceEdge{}, PageInfo: &generated.PageInfo{}}
	return all, each(func(rows pgx.Rows) error {
		if len(all.Edges) == first {
			all.PageInfo.HasNextPage = true
			return nil
		}
		i := &generated.Instance{}
		var operation struct {
			id, kind, state, message *string
			percent                  *int
		}
		err := rows.Scan(&i.ID, &i.Name, &i.AppSlug, &i.AppVersion, &i.Status, &i.Health, &i.HealthMessage, &i.Smoke,
			&i.CreatedAt, &i.UpdatedAt, &i.ReleasedAt, &i.Roles, &operation.id, &operation.kind, &operation.state,
			&operation.percent, &operation.message)
		if err == nil && operation.id != nil {
			i.LastOperation = &generated.Operation{ID: *operation.id, Kind: *operation.kind, State: *operation.state,
				Percent: *operation.percent, Message: *operation.message}
		}
		edge := &generated.InstanceEdge{Cursor: page.Cursor("instances", i.ID), Node: i}
		all.Edges, all.PageInfo.EndCursor = append(all.Edges, edge), &edge.Cursor
		return err
	})(rows)
}

// SetRepairPolicy changes an instance.
func (m mutation) SetRepairPolicy(ctx context.Context, in generated.SetRepairPolicyInput) (*generated.Instance, error) {
	policy, err := json.Marshal(map[string]any{"mode": in.Mode, "budget": in.Budget,
		"backOffSeconds": in.BackOffSeconds})
	if err != nil {
		return nil, err
	}
	i := &generated.Instance{}
	err = m.pool.QueryRow(ctx, `UPDATE instance SET repair = $2, repair_stopped = '', updated_at = now() WHERE id = $1
		RETURNING id, updated_at`, in.InstanceID, policy).Scan(&i.ID, &i.UpdatedAt)
	return i, err
}

// each runs one over every row.
func each(one func(pgx.Rows) error) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		defer rows.Close()
		for rows.Next() {
			if err := one(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	}
}
