package tx

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// arrive runs first on each connection: it reads whether the database is on the same server and timeline as before. A
// connection is to one server on one timeline as long as it lives, so what is written in a generation carries the
// generation's number. On a standby it fails, and the connection with it.
func (o Options) arrive(ctx context.Context, conn *pgx.Conn) error {
	// Below the tracer: this statement is not one of a caller's.
	found, err := conn.PgConn().Exec(ctx, `SELECT generation::text, began::text FROM platform.arrive()`).ReadAll()
	if err != nil {
		return fmt.Errorf("read the database's generation: %w", err)
	}
	row := found[0].Rows[0]
	if string(row[1]) != "true" || o.Began == nil {
		return nil
	}
	generation, err := strconv.ParseInt(string(row[0]), 10, 64)
	o.Began(generation)
	return err
}

// readOnly is PostgreSQL's code for a statement that is refused by a server that does not take writes any more.
const readOnly = "25006"

// endReadOnly closes a connection whose server does not take writes any more, so that the pool looks for the primary
// among the hosts of its address.
func endReadOnly(before pgconn.PgErrorHandler) pgconn.PgErrorHandler {
	return func(conn *pgconn.PgConn, refused *pgconn.PgError) bool {
		return refused.Code != readOnly && before(conn, refused)
	}
}
