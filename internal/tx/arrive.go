package tx

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// arrive is what each connection does first: it learns whether the database is where it was. A connection is to one
// server on one timeline as long as it lives, so that nothing is written in a generation that does not carry its
// number. On a standby it fails, and the connection with it.
func (o Options) arrive(ctx context.Context, conn *pgx.Conn) error {
	// Below the tracer: this is no statement of anybody's.
	found, err := conn.PgConn().Exec(ctx, `SELECT generation::text, began::text FROM platform.arrive()`).ReadAll()
	if err != nil {
		return fmt.Errorf("ask the database where it is: %w", err)
	}
	row := found[0].Rows[0]
	if string(row[1]) != "true" || o.Began == nil {
		return nil
	}
	generation, err := strconv.ParseInt(string(row[0]), 10, 64)
	o.Began(generation)
	return err
}

// readOnly is PostgreSQL's code of a statement that a server refuses which does not take writes any more.
const readOnly = "25006"

// endReadOnly closes a connection whose server does not take writes any more, so that the pool looks for the primary
// among the hosts of its address.
func endReadOnly(before pgconn.PgErrorHandler) pgconn.PgErrorHandler {
	return func(conn *pgconn.PgConn, refused *pgconn.PgError) bool {
		return refused.Code != readOnly && before(conn, refused)
	}
}
