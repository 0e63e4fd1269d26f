package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/workers/reconcile/stats"
)

const (
	watermarkEvery = 5 * time.Second
	// watermarkLate is how long one transaction may hold the feeds before the log names it.
	watermarkLate = 30 * time.Second
	// watermarkName bounds the names of a holder: applications name themselves.
	watermarkName = 64
)

// watermarkSQL finds who holds the lock on the oldest running transaction's own number: pg_locks and pg_prepared_xacts
// show every transaction to every role, where pg_stat_activity shows a role the start of its own alone.
const watermarkSQL = `WITH edge AS MATERIALIZED (SELECT pg_snapshot_xmin(s) AS oldest, pg_snapshot_xmax(s) AS next
	FROM pg_current_snapshot() s)
	SELECT edge.oldest::text::bigint, CASE WHEN p.gid IS NULL THEN 'backend'
	ELSE 'prepared' END, coalesce(p.gid, a.pid::text, ''),
		coalesce(p.database, a.datname, '')::text, coalesce(p.owner, a.usename, '')::text, coalesce(a.application_name, ''),
		coalesce(greatest(extract(epoch FROM clock_timestamp() - coalesce(p.prepared, a.xact_start)), 0), 0)::float8
	FROM edge JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted AND l.mode = 'ExclusiveLock'
	AND l.transactionid = edge.oldest::xid
	LEFT JOIN pg_stat_activity a ON a.pid = l.pid LEFT JOIN pg_prepared_xacts p ON p.transaction = edge.oldest::xid
	WHERE edge.oldest < edge.next LIMIT 1`

// watermark notes how far the feeds are behind, and whose transaction that is.
func (r *Reconciler) watermark(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watermarkEvery)
	defer cancel()
	found, err := r.DB.Lease().Query(ctx, watermarkSQL)
	if err != nil {
		return fmt.Errorf("read the feeds' watermark: %w", err)
	}
	defer found.Close()
	if !found.Next() {
		r.Stats.Held(nil)
		return found.Err()
	}
	var now stats.Holder
	var xid int64
	var known float64
	if err := found.Scan(&xid, &now.Kind, &now.Name, &now.Database, &now.User, &now.Application, &known); err != nil {
		return fmt.Errorf("read the feeds' watermark: %w", err)
	}
	now.Lag = max(time.Duration(known*float64(time.Second)), r.seen(xid))
	for _, name := range []*string{&now.Name, &now.Database, &now.User, &now.Application} {
		*name = (*name)[:min(len(*name), watermarkName)]
	}
	if before := r.Stats.Held(&now); now.Lag > watermarkLate && before.Lag <= watermarkLate {
		r.Log.Warn("a transaction holds back every feed", "kind", now.Kind, "name", now.Name, "database", now.Database,
			"user", now.User, "application", now.Application, "seconds", int(now.Lag.Seconds()))
	}
	return nil
}

// seen is for how long the oldest transaction has been this one, as far as this process knows. Only the goroutine of
// the watermark calls it.
func (r *Reconciler) seen(xid int64) time.Duration {
	if r.oldest != xid {
		r.oldest, r.oldestSince = xid, time.Now()
	}
	return time.Since(r.oldestSince)
}

// endOverdue ends writing transactions of ours that run for longer than they may: of a process that is stopped, or one
// that did not bound it itself.
func (r *Reconciler) endOverdue(ctx context.Context) error {
	ended, err := r.DB.EndOverdue(ctx)
	if ended > 0 {
		r.Stats.TransactionsEnded.Add(int64(ended))
		r.Log.Warn("transactions ran for longer than they may; their connections were ended", "transactions", ended)
	}
	return err
}
