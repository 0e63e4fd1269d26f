package platformtest

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/pgtest"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/migrations"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Issuer is the platform's public address in tests.
const Issuer = "https://platform.test"

// patience bounds everything that the kit does by itself.
const patience = 30 * time.Second

// Kit is a platform's database under test.
type Kit struct {
	// DB is the database as the platform opens it: every caller under row-level security.
	DB *tx.DB
	// DSN is the superuser's address of the same database.
	DSN string
	// Admin is the superuser's pool and Ent its client: for fixtures, and for looking at what was written.
	Admin *pgxpool.Pool
	Ent   *db.Client
	// Ring signs and verifies tokens.
	Ring *token.Keyring
	// Hub wakes waiters in this process; it does not run, so nothing is sent to others.
	Hub *event.Hub

	t       testing.TB
	denials *audit.Denials
	named   atomic.Int64
}

// New makes a kit with an empty, migrated database, which goes when the test ends.
func New(t testing.TB) *Kit {
	t.Helper()
	return Over(t, pgtest.New(t).AdminDSN())
}

// Over makes a kit over a migrated database, by a superuser's address, which may name several hosts.
func Over(t testing.TB, dsn string) *Kit {
	t.Helper()
	ctx := t.Context()
	kit := &Kit{DSN: dsn, t: t, denials: audit.NewDenials()}

	config, err := pgxpool.ParseConfig(dsn)
	require.NoError(t, err)
	config.MaxConns = 4
	migrations.OnlyPrimary(&config.ConnConfig.Config)
	kit.Admin, err = pgxpool.NewWithConfig(ctx, config)
	require.NoError(t, err)
	t.Cleanup(kit.Admin.Close)
	std := stdlib.OpenDBFromPool(kit.Admin)
	t.Cleanup(func() { _ = std.Close() })
	kit.Ent = db.NewClient(db.Driver(entsql.OpenDB(dialect.Postgres, std)))

	kit.DB, err = tx.Open(ctx, dsn, tx.Options{Connections: 4, Denials: kit.denials})
	require.NoError(t, err)
	t.Cleanup(kit.DB.Close)
	kit.Hub = event.NewHub(kit.DB.Worker(), slog.New(slog.DiscardHandler))
	kit.DB.SetHints(kit.Hub)

	kit.Ring, err = token.NewKeyring(Issuer)
	require.NoError(t, err)
	return kit
}

// context is for the kit's own work: it ends with the kit's patience, not with the test.
func (k *Kit) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// Audit is every audit entry written so far, refusals among them, oldest first.
func (k *Kit) Audit() []*db.AuditEntry {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	require.NoError(k.t, k.denials.Flush(ctx, k.DB.Worker()))
	entries, err := k.Ent.AuditEntry.Query().Order(db.Asc("created_at", "id")).All(ctx)
	require.NoError(k.t, err)
	return entries
}

// Count is how many rows the table has, with an optional condition and its arguments; for
// assertions that nothing, or one thing, was written.
func (k *Kit) Count(table, where string, args ...any) int {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	statement := "SELECT count(*) FROM " + table
	if where != "" {
		statement += " WHERE " + where
	}
	var n int
	require.NoError(k.t, k.Admin.QueryRow(ctx, statement, args...).Scan(&n))
	return n
}

// SQL runs a statement as the superuser.
func (k *Kit) SQL(statement string, args ...any) {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	_, err := k.Admin.Exec(ctx, statement, args...)
	require.NoError(k.t, err)
}
