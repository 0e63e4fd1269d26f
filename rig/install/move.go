package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/internal/postgres"
	"github.com/gpuaas/app-platform/migrations"
)

// MoveDatabase does what docs/operations.md describes for a dump that is restored elsewhere: the database goes on as a
// copy on a new server, which here takes the old one's address. All sessions in it are ended first, those that a killed
// program left too. Not for concurrent use.
func (r *Rig) MoveDatabase(ctx context.Context) error {
	if r.server == nil {
		return errors.New("this rig did not start the database server")
	}
	dump, past := r.path("postgres.dump"), r.path("postgres.past")
	defer func() { _ = os.Remove(dump) }()
	if err := r.endSessions(ctx); err != nil {
		return err
	}
	if err := program(ctx, "pg_dump", "-Fc", "-Z", "1", "-f", dump, "-d", r.adminDSN); err != nil {
		return err
	}
	if err := r.server.Stop(); err != nil {
		return err
	}
	if err := os.Rename(r.path("postgres"), past); err != nil {
		return err
	}
	server, err := postgres.Start(ctx, r.databaseConfig())
	if err != nil {
		return fmt.Errorf("start another database server: %w", err)
	}
	r.server = server
	if err := r.restoreInto(ctx, dump); err != nil {
		return err
	}
	return os.RemoveAll(past)
}

// restoreInto makes the roles and the database on the new server, and fills it.
func (r *Rig) restoreInto(ctx context.Context, dump string) error {
	conn, err := pgx.Connect(ctx, r.server.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := migrations.EnsureRoles(ctx, conn); err != nil {
		return err
	}
	// Another name at first: a program that is started early must not meet an empty database and migrate it.
	if _, err := conn.Exec(ctx, "create database restoring"); err != nil {
		return err
	}
	if err := program(ctx, "pg_restore", "--exit-on-error", "-d", r.server.DSN("restoring"), dump); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "alter database restoring rename to "+Database)
	return err
}

// endSessions ends what others do in the database, and waits until it is over.
func (r *Rig) endSessions(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, r.server.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for {
		var left int
		if err := conn.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1`,
			Database).Scan(&left); err != nil || left == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// program runs one of PostgreSQL's own programs.
func program(ctx context.Context, name string, args ...string) error {
	found, err := postgres.Find(ctx)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, filepath.Join(found.Dir, name), args...) // #nosec G204 -- PostgreSQL's own
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}
