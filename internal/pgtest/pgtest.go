package pgtest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/migrations"
)

// The login roles that the migrations create. They belong to the whole server, so all tests share them.
const (
	Owner    = "app_owner"
	API      = "app_api"
	Operator = "app_operator"
	Node     = "app_node"
	Worker   = "app_worker"
)

// setupTimeout bounds what one New may take: the first one may install PostgreSQL, initialise a cluster and run all
// migrations.
const setupTimeout = 20 * time.Minute

// DB is one test's own database.
type DB struct {
	// Name is the database's name on the shared server.
	Name   string
	server *server
}

// process is the one connection of this test process to the shared server: started by the first New, given back when
// the process ends.
var process = sync.OnceValues(func() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	return join(ctx, defaultDir(), defaultGrace)
})

// New makes a database with all migrations applied, and drops it when the test ends. Where PostgreSQL is missing it is
// installed (as root, by apt), else the test fails saying what to install.
func New(t testing.TB) *DB {
	t.Helper()
	return NewFrom(t, migrations.Hash(), migrations.Up)
}

// NewFrom is New with other contents than the product's migrations: build fills a template database, given a
// superuser's DSN, once per key.
func NewFrom(t testing.TB, key string, build func(ctx context.Context, dsn string) error) *DB {
	t.Helper()
	s, err := process()
	if err != nil {
		t.Fatalf("test database: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	template, err := s.template(ctx, key, build)
	if err != nil {
		t.Fatalf("template database: %v", err)
	}
	db := &DB{Name: s.nextName(), server: s}
	if err := s.clone(ctx, template, db.Name); err != nil {
		t.Fatalf("test database: %v", err)
	}
	t.Cleanup(func() { db.drop(t) })
	return db
}

func (db *DB) drop(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := db.server.admin(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "drop database if exists "+quote(db.Name)+" with (force)")
		return err
	})
	if err != nil {
		t.Errorf("drop test database %s: %v", db.Name, err)
	}
}

// AdminDSN connects as the server's superuser, whom row-level security does not bind: for fixtures and for looking at
// what a verb wrote.
func (db *DB) AdminDSN() string { return db.server.dsn(db.Name) }

// OwnerDSN connects as the role that owns the tables and runs migrations.
func (db *DB) OwnerDSN() string { return db.RoleDSN(Owner) }

// APIDSN connects as the role of the API server.
func (db *DB) APIDSN() string { return db.RoleDSN(API) }

// OperatorDSN connects as the role that serves platform operators' requests.
func (db *DB) OperatorDSN() string { return db.RoleDSN(Operator) }

// NodeDSN connects as the role that serves node agents.
func (db *DB) NodeDSN() string { return db.RoleDSN(Node) }

// WorkerDSN connects as the role of the workers.
func (db *DB) WorkerDSN() string { return db.RoleDSN(Worker) }

// RoleDSN connects as any role of the server.
func (db *DB) RoleDSN(role string) string { return db.server.postgres.RoleDSN(role, db.Name) }

var counter atomic.Int64

// nextName is unique on the server: the process's number, whose advisory lock it holds, and a count within the process.
func (s *server) nextName() string {
	return fmt.Sprintf("t_%d_%d", s.number, counter.Add(1))
}
