// Package reference is what the platform is compared with: the same answers by the shortest way, written by hand on
// net/http and pgx for exactly the queries that are measured, and a broadcast of frames that are prepared beforehand.
// It authenticates with the same function of the database and reads under the same row-level security, as the same
// login role.
package reference

import (
	"context"
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

// Role is the child that serves the hand-written handlers.
const Role process.Role = "reference"

// Config holds the hand-written server's configuration; the fields are those of the platform's.
type Config struct {
	DSN          string
	Keys, Issuer string
	Connections  int
	// Work says whether operations are carried out.
	Work bool
}

// server answers the measured queries.
type server struct {
	pool *pgxpool.Pool
	loop *loop
}

// Main serves as a child. Commands: "address", "accepted", and the measures.
func Main(ctx context.Context, raw json.RawMessage) (process.Commands, func(), error) {
	var config Config
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, nil, err
	}
	pool, err := connect(ctx, config.DSN, "app_api", config.Connections)
	if err != nil {
		return nil, nil, err
	}
	ring, err := token.LoadKeyring(config.Keys, config.Issuer)
	if err != nil {
		return nil, nil, err
	}
	s := &server{pool: pool}
	if config.Work {
		if s.loop, err = startLoop(ctx, config, ring); err != nil {
			return nil, nil, err
		}
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	keys, err := ring.Public()
	if err != nil {
		return nil, nil, err
	}
	web := &http.Server{Handler: s.handler(keys), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	go func() {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "reference:", err)
		}
	}()
	stop := func() {
		_ = web.Close()
		s.loop.stop()
		pool.Close()
	}
	return process.WithMeasures(process.Commands{
		"address":  func(json.RawMessage) (any, error) { return listener.Addr().String(), nil },
		"accepted": func(json.RawMessage) (any, error) { return s.loop.take(), nil },
	}), stop, nil
}

func (s *server) handler(keys []byte) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /instances/{id}", s.detail)
	mux.HandleFunc("PUT /instances/{id}/repair", s.repair)
	mux.HandleFunc("GET /projects/{id}/instances", s.list)
	mux.HandleFunc("GET /apps/{slug}/manifests", s.catalog)
	mux.HandleFunc("GET /artifacts/{digest}", s.artifact)
	mux.HandleFunc("POST /launch", s.launch)
	mux.HandleFunc("GET /.well-known/jwks.json", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(keys) })
	return mux
}

func connect(ctx context.Context, dsn, role string, connections int) (*pgxpool.Pool, error) {
	address, err := migrations.RoleDSN(dsn, role)
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("database address: %w", err)
	}
	config.MaxConns = int32(connections)
	config.ConnConfig.RuntimeParams["app.claims_known"] = "1" // the loop takes all kinds that the bench makes
	return pgxpool.NewWithConfig(ctx, config)
}

// caller is who platform.enter found.
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
	batch.Queue(`SELECT subject_id, subject_name, bindings FROM platform.enter('session', $1, $2)`, string(secret.ID),
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
