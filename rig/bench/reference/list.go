package reference

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/service/kit/page"
)

// listPage is how many instances the list answers.
const listPage = 50

type listed struct {
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	AppSlug       string          `json:"appSlug"`
	AppVersion    string          `json:"appVersion"`
	Status        string          `json:"status"`
	Health        string          `json:"health"`
	HealthMessage string          `json:"healthMessage"`
	Smoke         bool            `json:"smoke"`
	CreatedAt     string          `json:"createdAt"`
	UpdatedAt     string          `json:"updatedAt"`
	ReleasedAt    *string         `json:"releasedAt"`
	Roles         json.RawMessage `json:"roles"`
	LastOperation *brief          `json:"lastOperation"`
}

type brief struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	State   string `json:"state"`
	Percent int    `json:"percent"`
	Message string `json:"message"`
}

type listEdge struct {
	Cursor string `json:"cursor"`
	Node   listed `json:"node"`
}

type list struct {
	Edges    []listEdge `json:"edges"`
	PageInfo pageInfo   `json:"pageInfo"`
}

// list answers a project's newest instances, each with its last operation, in one round trip.
func (s *server) list(w http.ResponseWriter, r *http.Request) {
	var who caller
	batch, id, found := &pgx.Batch{}, r.PathValue("id"), list{Edges: []listEdge{}}
	if !enter(batch, r, &who) {
		refuse(w, http.StatusUnauthorized)
		return
	}
	batch.Queue(`SELECT i.id, i.name, i.app_slug, i.app_version, i.status, i.health, i.health_message, i.smoke,
		i.created_at,
		i.updated_at, i.released_at, i.roles, o.id, o.kind, o.state, o.percent, o.message
		FROM instance i LEFT JOIN operation o ON o.id = i.last_operation_id
		WHERE i.project_id = $1 ORDER BY i.id DESC LIMIT $2`, id, listPage+1).Query(found.scan)
	if err := s.pool.SendBatch(r.Context(), batch).Close(); err != nil {
		refuse(w, http.StatusInternalServerError)
		return
	}
	if !who.may(id) {
		refuse(w, http.StatusNotFound)
		return
	}
	answer(w, map[string]any{"instances": found})
}

func (l *list) scan(rows pgx.Rows) error {
	for rows.Next() {
		var n listed
		var created, updated time.Time
		var released *time.Time
		var operation struct {
			id, kind, state, message *string
			percent                  *int
		}
		if err := rows.Scan(&n.ID, &n.Name, &n.AppSlug, &n.AppVersion, &n.Status, &n.Health, &n.HealthMessage, &n.Smoke,
			&created, &updated,
			&released, (*[]byte)(&n.Roles), &operation.id, &operation.kind, &operation.state, &operation.percent,
			&operation.message); err != nil {
			return err
		}
		n.CreatedAt, n.UpdatedAt, n.ReleasedAt = stamp(created), stamp(updated), stampOf(released)
		if operation.id != nil {
			n.LastOperation = &brief{*operation.id, *operation.kind, *operation.state, *operation.percent,
				*operation.message}
		}
		l.Edges = append(l.Edges, listEdge{Cursor: page.Cursor("instances", n.ID), Node: n})
	}
	if len(l.Edges) > listPage {
		l.Edges, l.PageInfo.HasNextPage = l.Edges[:listPage], true
	}
	if n := len(l.Edges); n > 0 {
		l.PageInfo.EndCursor = &l.Edges[n-1].Cursor
	}
	return rows.Err()
}

func timelineCursor(seq int, generation int64) string {
	return "s" + strconv.Itoa(seq) + "." + strconv.FormatInt(generation, 36)
}
