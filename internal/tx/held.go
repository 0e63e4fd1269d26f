package tx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// openStd gives Ent the pool's connections.
func openStd(pool *pgxpool.Pool) *sql.DB {
	std := sql.OpenDB(connector{stdlib.GetPoolConnector(pool)})
	std.SetMaxIdleConns(0) // the pool keeps them
	return std
}

// reserve takes one of the pool's connections, in the form for Ent and in that for pgx, until reserved is closed.
func (p *pool) reserve(ctx context.Context) (reserved *sql.Conn, conn *pgx.Conn, err error) {
	if reserved, err = p.std.Conn(ctx); err != nil {
		return nil, nil, fmt.Errorf("reserve a connection: %w", err)
	}
	err = reserved.Raw(func(driver any) error {
		conn = driver.(held).Conn.Conn()
		return nil
	})
	if err != nil {
		return nil, nil, errors.Join(err, reserved.Close())
	}
	return reserved, conn, nil
}

type connector struct{ driver.Connector }

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return held{conn.(*stdlib.Conn)}, nil
}

// held is a connection that stays with the transaction that reserved it until that gives it back. On driver.ErrBadConn,
// which pgx returns also when a context had ended before the statement was sent, database/sql gives the connection back
// at once: the pool would close it in a goroutine of its own while the transaction, which also uses it directly, still
// rolls back on it.
type held struct{ *stdlib.Conn }

// ExecContext implements driver.ExecerContext.
func (h held) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	out, err := h.Conn.ExecContext(ctx, query, args)
	return out, kept(ctx, err)
}

// QueryContext implements driver.QueryerContext.
func (h held) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	out, err := h.Conn.QueryContext(ctx, query, args)
	return out, kept(ctx, err)
}

// PrepareContext implements driver.ConnPrepareContext.
func (h held) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	out, err := h.Conn.PrepareContext(ctx, query)
	return out, kept(ctx, err)
}

// errLost is the error of a connection that takes no statement any more; Away reports true for it.
var errLost = fmt.Errorf("the connection to the database was lost: %w", net.ErrClosed)

// kept replaces driver.ErrBadConn by an error that leaves the connection with the transaction.
func kept(ctx context.Context, err error) error {
	if !errors.Is(err, driver.ErrBadConn) {
		return err
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return errLost
}
