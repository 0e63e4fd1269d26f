package rig

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Database is the name of the platform's database on the embedded server.
const Database = "app_platform"

// ensureDatabase creates the platform's database unless it is there. The data folder's lock keeps others out meanwhile.
func ensureDatabase(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var exists bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", Database).Scan(&exists); err != nil || exists {
		return err
	}
	_, err = conn.Exec(ctx, "create database "+Database)
	return err
}
