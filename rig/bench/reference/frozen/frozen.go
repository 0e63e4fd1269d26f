// Package frozen is what the platform is compared with over time: the hand-written handlers of commit a3d4938 on
// net/http and pgx, with that commit's platform.enter and policies (frozen.sql). It does not follow the platform: a
// figure beside package reference says how near the platform is to the shortest way of today, and one beside this
// package how far it has come since. So it repeats what package reference has.
//
// It differs from that commit where it would not run, or not answer the same bytes: import paths and line breaks;
// schema and login role have names of their own; cursors of a timeline name the event's generation, as the platform's.
// One handler is new, since the load writes: repair.go.
package frozen

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/migrations"
	"github.com/gpuaas/app-platform/rig/bench/process"
)

// Role is the child that serves the frozen handlers.
const Role process.Role = "frozen"

// Login is the frozen handlers' login role, bound by the policies of frozen.sql.
const Login = "app_frozen"

//go:embed frozen.sql
var statements string

// Config holds the frozen server's configuration; the fields are those of the platform's.
type Config struct {
	DSN         string
	Connections int
}

// Install writes the frozen schema, role and policies into a migrated database; what an earlier run left is replaced.
func Install(ctx context.Context, admin *pgxpool.Pool) error {
	err := pgx.BeginFunc(ctx, admin, func(t pgx.Tx) error {
		_, err := t.Conn().PgConn().Exec(ctx, statements).ReadAll()
		return err
	})
	if err != nil {
		return fmt.Errorf("install the frozen scope: %w", err)
	}
	return nil
}

// server answers the measured queries.
type server struct{ pool *pgxpool.Pool }

// Main serves as a child. Commands: "address" and the measures.
func Main(ctx context.Context, raw json.RawMessage) (process.Commands, func(), error) {
	var config Config
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, nil, err
	}
	pool, err := connect(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		pool.Close()
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	web := &http.Server{Handler: (&server{pool: pool}).handler(), ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout: 2 * time.Minute}
	go func() {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "frozen:", err)
		}
	}()
	stop := func() {
		_ = web.Close()
		pool.Close()
	}
	return process.WithMeasures(process.Commands{
		"address": func(json.RawMessage) (any, error) { return listener.Addr().String(), nil },
	}), stop, nil
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /instances/{id}", s.detail)
	mux.HandleFunc("PUT /instances/{id}/repair", s.repair)
	mux.HandleFunc("GET /projects/{id}/instances", s.list)
	return mux
}

func connect(ctx context.Context, config Config) (*pgxpool.Pool, error) {
	address, err := migrations.RoleDSN(config.DSN, Login)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("database address: %w", err)
	}
	pool.MaxConns = int32(config.Connections)
	return pgxpool.NewWithConfig(ctx, pool)
}

// caller is who frozen.enter found.
type caller struct {
	id, name *string
	bindings []byte
}

// may says whether the caller administers, works in or views the project.
func (c *caller) may(project string) bool {
	var bindings []struct{ Role, Project string }
	if c.id == nil || json.Unmarshal(c.bindings, &bindings) != nil {
		return false
	}
	for _, binding := range bindings {
		if binding.Project == project && slices.Contains([]string{"project_admin", "project_member", "project_viewer"},
			binding.Role) {
			return true
		}
	}
	return false
}

// enter begins a batch by learning who calls; false when no session was shown.
func enter(batch *pgx.Batch, r *http.Request, into *caller) bool {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	secret, err := token.ParseSecret(text)
	if !ok || err != nil || secret.Kind != token.Session {
		return false
	}
	batch.Queue(`SELECT subject_id, subject_name, bindings FROM frozen.enter('session', $1, $2)`, string(secret.ID),
		secret.Hash).
		QueryRow(func(row pgx.Row) error { return row.Scan(&into.id, &into.name, &into.bindings) })
	return true
}

// answer writes {"data": value} as JSON.
func answer(w http.ResponseWriter, value any) {
	body, err := json.Marshal(struct {
		Data any `json:"data"`
	}{value})
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

func refuse(w http.ResponseWriter, status int) { http.Error(w, http.StatusText(status), status) }

// stamp is a moment as the API writes it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func stampOf(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := stamp(*t)
	return &text
}
