// Package peers is other software that the platform's reads are compared with: a plain gqlgen server, and PostGraphile.
// Each reads the bench's own rows through views of the same shape, as one login role without row-level security, and
// knows no callers: what the platform does for its walls, they do not.
package peers

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/migrations"
)

// login is the peers' login role.
const login = "app_peer"

//go:embed peers.sql
var statements string

// Config holds a peer's configuration.
type Config struct {
	// DSN is the peers' address of the database, and Connections the size of each process's pool.
	DSN         string
	Connections int
	// Folder has PostGraphile installed, and Processes is how many of it share the port.
	Folder    string
	Processes int
}

// Schema has the peers' views.
const Schema = "peers"

// Install writes the peers' views and login role into a migrated database, and returns the role's address.
func Install(ctx context.Context, admin *pgxpool.Pool, dsn string) (string, error) {
	err := pgx.BeginFunc(ctx, admin, func(t pgx.Tx) error {
		_, err := t.Conn().PgConn().Exec(ctx, statements).ReadAll()
		return err
	})
	if err != nil {
		return "", fmt.Errorf("make the peers' views: %w", err)
	}
	return migrations.RoleDSN(dsn, login)
}
