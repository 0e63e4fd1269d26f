package reference

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/service/kit/page"
)

// The pages of the detail.
const (
	memberPage = 50
	eventPage  = 20
)

type instance struct {
	ID                 string          `json:"id"`
	Name               string          `json:"name"`
	ProjectID          string          `json:"projectId"`
	AppSlug            string          `json:"appSlug"`
	AppVersion         string          `json:"appVersion"`
	Status             string          `json:"status"`
	Health             string          `json:"health"`
	HealthMessage      string          `json:"healthMessage"`
	Revision           int             `json:"revision"`
	Config             json.RawMessage `json:"config"`
	BoundCapacityShape string          `json:"boundCapacityShape"`
	RuntimeBackend     string          `json:"runtimeBackend"`
	CorrelationID      string          `json:"correlationId"`
	CreatedAt          string          `json:"createdAt"`
	UpdatedAt          string          `json:"updatedAt"`
	Roles              json.RawMessage `json:"roles"`
	Members            members         `json:"members"`
	LastOperation      *operation      `json:"lastOperation"`
	Events             events          `json:"events"`
}

type pageInfo struct {
	HasNextPage bool    `json:"hasNextPage"`
	EndCursor   *string `json:"endCursor"`
}

type members struct {
	Edges    []memberEdge `json:"edges"`
	PageInfo pageInfo     `json:"pageInfo"`
}

type memberEdge struct {
	Cursor string `json:"cursor"`
	Node   member `json:"node"`
}

type member struct {
	ID            string `json:"id"`
	ComponentKey  string `json:"componentKey"`
	Index         int    `json:"index"`
	Status        string `json:"status"`
	Cordoned      bool   `json:"cordoned"`
	Health        string `json:"health"`
	HealthMessage string `json:"healthMessage"`
	UpdatedAt     string `json:"updatedAt"`
}

type operation struct {
	ID        string  `json:"id"`
	Kind      string  `json:"kind"`
	State     string  `json:"state"`
	Phase     string  `json:"phase"`
	Percent   int     `json:"percent"`
	Message   string  `json:"message"`
	CreatedAt string  `json:"createdAt"`
	StartedAt *string `json:"startedAt"`
	EndedAt   *string `json:"endedAt"`
	Steps     []step  `json:"steps"`
}

type step struct {
	Name      string  `json:"name"`
	State     string  `json:"state"`
	Attempt   int     `json:"attempt"`
	Message   string  `json:"message"`
	StartedAt *string `json:"startedAt"`
	EndedAt   *string `json:"endedAt"`
}

type events struct {
	Edges    []eventEdge `json:"edges"`
	PageInfo pageInfo    `json:"pageInfo"`
}

type eventEdge struct {
	Node event `json:"node"`
}

type event struct {
	ID          string          `json:"id"`
	Cursor      string          `json:"cursor"`
	Seq         int             `json:"seq"`
	Type        string          `json:"type"`
	Message     string          `json:"message"`
	Payload     json.RawMessage `json:"payload"`
	OperationID *string         `json:"operationId"`
	OccurredAt  string          `json:"occurredAt"`
}

// detail answers one instance with its neighbours, in one round trip to the database.
func (s *server) detail(w http.ResponseWriter, r *http.Request) {
	var who caller
	var found *instance
	batch, id := &pgx.Batch{}, r.PathValue("id")
	if !enter(batch, r, &who) {
		refuse(w, http.StatusUnauthorized)
		return
	}
	queueDetail(batch, id, &found)
	if err := s.pool.SendBatch(r.Context(), batch).Close(); err != nil {
		refuse(w, http.StatusInternalServerError)
		return
	}
	if found == nil || !who.may(found.ProjectID) {
		refuse(w, http.StatusNotFound)
		return
	}
	answer(w, map[string]any{"instance": found})
}

// queueDetail fills into once the batch is answered; it stays nil when the instance does not exist.
func queueDetail(batch *pgx.Batch, id string, into **instance) {
	read := &instance{}
	batch.Queue(`SELECT id, name, project_id, app_slug, app_version, status, health, health_message, revision, config,
		bound_capacity_shape, runtime_backend, correlation_id, created_at, updated_at, roles FROM instance
		WHERE id = $1`, id).
		Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var created, updated time.Time
				if err := rows.Scan(&read.ID, &read.Name, &read.ProjectID, &read.AppSlug, &read.AppVersion,
					&read.Status, &read.Health,
					&read.HealthMessage, &read.Revision, (*[]byte)(&read.Config), &read.BoundCapacityShape,
					&read.RuntimeBackend,
					&read.CorrelationID,
					&created, &updated, (*[]byte)(&read.Roles)); err != nil {
					return err
				}
				read.CreatedAt, read.UpdatedAt = stamp(created), stamp(updated)
				*into = read
			}
			return rows.Err()
		})
	queueMembers(batch, id, &read.Members)
	queueOperation(batch, id, &read.LastOperation)
	queueEvents(batch, id, &read.Events)
}

func queueMembers(batch *pgx.Batch, id string, into *members) {
	batch.Queue(`SELECT id, component_key, ordinal, status, cordoned, health, health_message, updated_at FROM member
		WHERE instance_id = $1 ORDER BY id LIMIT $2`, id, memberPage+1).Query(func(rows pgx.Rows) error {
		into.Edges = []memberEdge{}
		for rows.Next() {
			var m member
			var updated time.Time
			if err := rows.Scan(&m.ID, &m.ComponentKey, &m.Index, &m.Status, &m.Cordoned, &m.Health, &m.HealthMessage,
				&updated); err != nil {
				return err
			}
			m.UpdatedAt = stamp(updated)
			into.Edges = append(into.Edges, memberEdge{Cursor: page.Cursor("members", m.ID), Node: m})
		}
		if len(into.Edges) > memberPage {
			into.Edges, into.PageInfo.HasNextPage = into.Edges[:memberPage], true
		}
		if n := len(into.Edges); n > 0 {
			into.PageInfo.EndCursor = &into.Edges[n-1].Cursor
		}
		return rows.Err()
	})
}

func queueOperation(batch *pgx.Batch, id string, into **operation) {
	read := &operation{Steps: []step{}}
	batch.Queue(`SELECT o.id, o.kind, o.state, o.phase, o.percent, o.message, o.created_at, o.started_at, o.ended_at
		FROM operation o WHERE o.id = (SELECT last_operation_id FROM instance
		WHERE id = $1)`, id).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var created time.Time
			var started, ended *time.Time
			if err := rows.Scan(&read.ID, &read.Kind, &read.State, &read.Phase, &read.Percent, &read.Message,
				&created, &started, &ended); err != nil {
				return err
			}
			read.CreatedAt, read.StartedAt, read.EndedAt = stamp(created), stampOf(started), stampOf(ended)
			*into = read
		}
		return rows.Err()
	})
	batch.Queue(`SELECT name, state, attempt, message, started_at, ended_at FROM operation_step
		WHERE operation_id = (SELECT last_operation_id FROM instance WHERE id = $1)
		ORDER BY ordinal`, id).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var one step
			var started, ended *time.Time
			if err := rows.Scan(&one.Name, &one.State, &one.Attempt, &one.Message, &started, &ended); err != nil {
				return err
			}
			one.StartedAt, one.EndedAt = stampOf(started), stampOf(ended)
			read.Steps = append(read.Steps, one)
		}
		return rows.Err()
	})
}

func queueEvents(batch *pgx.Batch, id string, into *events) {
	batch.Queue(`SELECT id, seq, type, message, payload, operation_id, occurred_at, generation FROM app_instance_event
		WHERE instance_id = $1 AND seq > 0 ORDER BY seq LIMIT $2`, id, eventPage+1).Query(func(rows pgx.Rows) error {
		into.Edges = []eventEdge{}
		for rows.Next() {
			var e event
			var occurred time.Time
			var generation int64
			if err := rows.Scan(&e.ID, &e.Seq, &e.Type, &e.Message, (*[]byte)(&e.Payload), &e.OperationID,
				&occurred, &generation); err != nil {
				return err
			}
			e.Cursor, e.OccurredAt = timelineCursor(e.Seq, generation), stamp(occurred)
			into.Edges = append(into.Edges, eventEdge{Node: e})
		}
		if len(into.Edges) > eventPage {
			into.Edges, into.PageInfo.HasNextPage = into.Edges[:eventPage], true
		}
		if n := len(into.Edges); n > 0 {
			into.PageInfo.EndCursor = &into.Edges[n-1].Node.Cursor
		}
		return rows.Err()
	})
}
