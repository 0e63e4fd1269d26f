package tx

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
)

// AsPipelined is As in two round trips where the statements are known beforehand: BEGIN goes out with
// the reads, and COMMIT with the writes that fn queues, which are those of Tx.Last. fn may use t in between like any verb.
// After a deadlock reads and fn are run again from the start.
func (d *DB) AsPipelined(ctx context.Context, actor *authz.Actor, reads func(*pgx.Batch),
	fn func(ctx context.Context, t *Tx, writes *pgx.Batch) error) error {
	return d.retry(func() error {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		reserved, conn, err := d.worker.reserve(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = reserved.Close() }()
		ctx, over := d.bounded(ctx)
		defer over()
		t := d.newTx(ctx, reserved, conn)
		t.Actor = actor
		if err := t.pipeline(ctx, reads, fn); err != nil {
			return errors.Join(overdue(ctx, err), t.abort(ctx))
		}
		d.Wake(t.topics...)
		return nil
	})
}

func (t *Tx) pipeline(ctx context.Context, reads func(*pgx.Batch),
	fn func(context.Context, *Tx, *pgx.Batch) error) error {
	if err := t.begin(ctx, func(t *Tx, first *pgx.Batch) {
		first.Queue(nowSQL).QueryRow(t.setNow)
		reads(first)
	}); err != nil {
		return err
	}
	if err := fn(ctx, t, &t.last); err != nil {
		return err
	}
	return t.commit(ctx)
}

// idle is how the wire protocol says that a connection is in no transaction.
const idle = 'I'

// abort ends a transaction that failed, unless it ended by itself or its connection is gone.
func (t *Tx) abort(ctx context.Context) error {
	if t.conn.IsClosed() || t.conn.PgConn().TxStatus() == idle {
		return nil
	}
	_, err := t.conn.Exec(context.WithoutCancel(ctx), "ROLLBACK")
	return err
}
