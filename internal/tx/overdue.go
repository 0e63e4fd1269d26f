package tx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
)

const (
	// longest bounds a writing transaction. A feed is read only below the oldest running one, and PostgreSQL 15 bounds
	// statements and pauses, not transactions.
	longest = 30 * time.Second
	// overdueTimeout bounds the search through one login role's connections, its wait for a connection included.
	overdueTimeout = 3 * time.Second
)

// errOverdue is the cause of a transaction's context that ended at its bound.
var errOverdue = errors.New("the transaction took longer than it may")

// bounded returns the context of one writing transaction.
func (d *DB) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d.options.Longest, errOverdue)
}

// overdue turns the error of a transaction that its bound ended into UNAVAILABLE. When the bound struck at the commit,
// it is not known whether the transaction committed.
func overdue(ctx context.Context, err error) error {
	if err == nil || !errors.Is(context.Cause(ctx), errOverdue) {
		return err
	}
	if _, said := fault.As(err); said {
		return err
	}
	return fault.New(fault.Unavailable,
		"the change took longer than a transaction may; try again").Because(errors.Join(errOverdue, err))
}

// overdueSQL ends connections of the login role that have been in one writing transaction for too long. A role may end
// its own connections without any further right.
const overdueSQL = `SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity
	WHERE datname = current_database() AND usename = current_user AND application_name LIKE '` + applicationPrefix + `%'
	AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL AND xact_start < now() - make_interval(secs => $1)`

// EndOverdue ends the connections of every process of ours that have been in a writing transaction for one and a half
// times its bound, and returns how many there were. A process ends its own at the bound, unless the process is halted,
// or the transaction did not go through Write and As.
func (d *DB) EndOverdue(ctx context.Context) (ended int, err error) {
	for _, each := range []*pool{d.api, d.operator, d.node, d.lease} {
		found, failed := each.endOverdue(ctx, d.options.Longest*3/2)
		ended, err = ended+found, errors.Join(err, failed)
	}
	return ended, err
}

func (p *pool) endOverdue(ctx context.Context, bound time.Duration) (ended int, err error) {
	ctx, cancel := context.WithTimeout(ctx, overdueTimeout)
	defer cancel()
	found, err := p.Query(ctx, overdueSQL, bound.Seconds())
	if err != nil {
		return 0, fmt.Errorf("end overdue transactions: %w", err)
	}
	pids, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (pid int, err error) {
		return pid, row.Scan(&pid, nil)
	})
	return len(pids), err
}
