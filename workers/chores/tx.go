package chores

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gpuaas/app-platform/internal/tx"
)

// errJoined is the answer to what only the transaction's owner may do.
var errJoined = errors.New("chores: the transaction belongs to the caller")

// Tx returns the transaction for River: a job that is inserted in it exists if and only if the transaction commits.
func Tx(t *tx.Tx) pgx.Tx { return joined{t} }

// joined is a transaction that its owner ends.
type joined struct{ *tx.Tx }

// Begin implements pgx.Tx.
func (joined) Begin(context.Context) (pgx.Tx, error) { return nil, errJoined }

// Commit implements pgx.Tx.
func (joined) Commit(context.Context) error { return errJoined }

// Rollback implements pgx.Tx.
func (joined) Rollback(context.Context) error { return errJoined }

// CopyFrom implements pgx.Tx.
func (joined) CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error) {
	return 0, errJoined
}

// LargeObjects implements pgx.Tx.
func (joined) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

// Prepare implements pgx.Tx.
func (joined) Prepare(context.Context, string, string) (*pgconn.StatementDescription, error) {
	return nil, errJoined
}

// Conn implements pgx.Tx.
func (joined) Conn() *pgx.Conn { return nil }
