package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The classes of advisory locks in database postgres of the shared server.
const (
	processLocks int32 = 0x7067 // (class, process number): held by every live process
	// (class, 0): held while a template is built. One for all keys: builds create server-wide roles
	templateLocks int32 = 0x7074
)

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// template returns the name of the template database of key, building it when no process has.
func (s *server) template(ctx context.Context, key string, build func(ctx context.Context, dsn string) error) (string,
	error) {
	sum := sha256.Sum256([]byte(key))
	name := "tpl_" + hex.EncodeToString(sum[:10])
	if _, ok := s.known.Load(name); ok {
		return name, nil
	}
	// A connection of its own: building takes a while, and clones of other templates need not wait for it.
	conn, err := pgx.Connect(ctx, s.dsn("postgres"))
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1, 0)", templateLocks); err != nil {
		return "", err
	}
	if err := s.ensure(ctx, conn, name, build); err != nil {
		return "", err
	}
	s.known.Store(name, true)
	return name, nil
}

// ensure builds under another name and renames at the end, so that a template that exists is whole.
func (s *server) ensure(ctx context.Context, conn *pgx.Conn, name string,
	build func(context.Context, string) error) error {
	var exists bool
	err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", name).Scan(&exists)
	if err != nil || exists {
		return err
	}
	draft := name + "_draft"
	if err := execAll(ctx, conn, "drop database if exists "+quote(draft)+" with (force)",
		"create database "+quote(draft)); err != nil {
		return err
	}
	if err := build(ctx, s.dsn(draft)); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	return execAll(ctx, conn,
		"select pg_terminate_backend(pid) from pg_stat_activity where datname = '"+draft+"'",
		"alter database "+quote(draft)+" with allow_connections false",
		"alter database "+quote(draft)+" rename to "+quote(name))
}

// clone copies a template. PostgreSQL does not copy the owner, rights and settings of a database, so they are carried
// over in the catalogue.
func (s *server) clone(ctx context.Context, template, name string) error {
	return s.admin(ctx, func(conn *pgx.Conn) error {
		create := fmt.Sprintf("create database %s template %s strategy file_copy", quote(name), quote(template))
		if _, err := conn.Exec(ctx, create); err != nil {
			return fmt.Errorf("clone: %w", err)
		}
		for _, carry := range carryOver {
			if _, err := conn.Exec(ctx, carry, template, name); err != nil {
				return fmt.Errorf("clone: carry settings over: %w", err)
			}
		}
		return nil
	})
}

var carryOver = []string{
	`update pg_database new set datdba = tpl.datdba, datacl = tpl.datacl
		from pg_database tpl where tpl.datname = $1 and new.datname = $2`,
	`insert into pg_db_role_setting
		select new.oid, r.setrole, r.setconfig from pg_db_role_setting r
		join pg_database tpl on tpl.oid = r.setdatabase and tpl.datname = $1
		join pg_database new on new.datname = $2`,
}

// sweep drops the databases of processes that have ended: their advisory locks are free.
func (s *server) sweep(ctx context.Context) error {
	rows, err := s.conn.Query(ctx, `select datname from pg_database where datname like 't\_%' and split_part(datname, '_', 2)::int8 not in
		(select objid::int8 from pg_locks where locktype = 'advisory' and classid::int8 = $1 and granted)`,
		int64(processLocks))
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list left databases: %w", err)
	}
	for _, name := range names {
		if err := execAll(ctx, s.conn, "drop database if exists "+quote(name)+" with (force)"); err != nil {
			return fmt.Errorf("drop left database: %w", err)
		}
	}
	return nil
}

func execAll(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
