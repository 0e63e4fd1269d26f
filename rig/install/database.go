package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Database is the name of the platform's database on the embedded server.
const Database = "app_platform"

// databaseTimeout bounds how long somebody else's server may take to answer.
const databaseTimeout = 15 * time.Second

// checkDatabase finds out early that a server given by address cannot be used. The driver's errors name user and host,
// never the password.
func checkDatabase(ctx context.Context, dsn string) error {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var rights bool
	err = conn.QueryRow(ctx, "select rolsuper or rolcreaterole from pg_roles where rolname = current_user").
		Scan(&rights)
	if err == nil && !rights {
		return errors.New("DATABASE_URL: its account may not create roles; give a superuser's address")
	}
	return err
}

// ensureDatabase creates the platform's database unless it is there. The data folder's lock keeps others out meanwhile.
func ensureDatabase(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var exists bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)",
		Database).Scan(&exists); err != nil || exists {
		return err
	}
	_, err = conn.Exec(ctx, "create database "+Database)
	return err
}
