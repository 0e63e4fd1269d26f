package tx

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
)

// Query is one statement of a Read, with what takes its rows. Scan may be called again when the
// read moves to another login role, so it must start over.
type Query struct {
	SQL  string
	Args []any
	Scan func(rows pgx.Rows) error
}

// Read runs the queries as the caller of ctx in one pipelined round trip and one implicit transaction, and returns who
// the caller is. The rows are what row-level security lets through: the caller of Read still has to check the
// permission key before it lets them out. UNAUTHENTICATED when the credential is missing or not valid.
func (db *DB) Read(ctx context.Context, queries ...Query) (*authz.Actor, error) {
	credential, ok := CredentialFrom(ctx)
	if !ok {
		return nil, fault.New(fault.Unauthenticated, "a credential is required")
	}
	from := db.poolFor(credential)
	actor, err := db.readFrom(ctx, from, credential, queries)
	tell(ctx, err)
	if err != nil {
		return nil, err
	}
	if right := db.rightPool(credential, actor, from); right != from {
		if actor, err = db.readFrom(ctx, right, credential, queries); err != nil {
			return nil, err
		}
	}
	return authz.Noting(ctx, actor), nil
}

// rightPool returns the pool that the actor belongs to, and remembers it for the next time.
func (db *DB) rightPool(credential Credential, actor *authz.Actor, used *pool) *pool {
	if used == db.node {
		return used
	}
	if platform(actor) {
		if used != db.operator {
			db.remember(credential, true)
		}
		return db.operator
	}
	if used == db.operator {
		db.remember(credential, false)
	}
	return db.api
}

func (db *DB) readFrom(ctx context.Context, from *pool, credential Credential, queries []Query) (*authz.Actor, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	batch := &pgx.Batch{}
	proving := provingOf(ctx)
	proving.queue(batch, db, credential)
	var caller entered
	caller.queue(batch, credential)
	for _, query := range queries {
		batch.Queue(query.SQL, query.Args...).Query(func(rows pgx.Rows) error { return query.Scan(rows) })
	}
	if err := from.SendBatch(ctx, batch).Close(); err != nil {
		if caller.kind == nil && db.beyondNode(from, err) != err {
			return nil, errUnknown()
		}
		return nil, db.beyondNode(from, refusedText(fmt.Errorf("read: %w", err)))
	}
	proving.read(&caller)
	return caller.actor(credential, &db.actors)
}

// Collect runs a query within a transaction and collects its rows, with scan for each.
func Collect[T any](ctx context.Context, t *Tx, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := t.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// Rows returns a Query that collects every row into a slice, with scan for each.
func Rows[T any](into *[]T, scan func(row pgx.CollectableRow) (T, error), sql string, args ...any) Query {
	return Query{SQL: sql, Args: args, Scan: func(rows pgx.Rows) error {
		collected, err := pgx.CollectRows(rows, scan)
		*into = collected
		return err
	}}
}

// Row returns a Query for at most one row; into is nil when no row matches.
func Row[T any](into **T, scan func(row pgx.CollectableRow) (*T, error), sql string, args ...any) Query {
	return Query{SQL: sql, Args: args, Scan: func(rows pgx.Rows) error {
		collected, err := pgx.CollectRows(rows, scan)
		*into = nil
		if len(collected) > 0 {
			*into = collected[0]
		}
		return err
	}}
}
