package drills_test

import (
	"context"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// tamper writes past every rule, as somebody does who has the database's superuser.
func (w *ward) tamper(statement string, args ...any) {
	w.t.Helper()
	conn, err := pgx.Connect(w.ctx, shared.AdminDSN())
	w.fine(err)
	defer func() { _ = conn.Close(context.Background()) }()
	w.fine(pgx.BeginFunc(w.ctx, conn, func(begun pgx.Tx) error {
		if _, err := begun.Exec(w.ctx, `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		_, err := begun.Exec(w.ctx, statement, args...)
		return err
	}))
}

// asleep does something while the worker is halted, and has another one begin.
func (w *ward) asleep(do func()) {
	w.t.Helper()
	worker := shared.Others[0]
	w.fine(worker.Signal(syscall.SIGSTOP))
	defer func() { w.fine(worker.Signal(syscall.SIGKILL)) }() // its supervisor starts it again
	do()
}

// underway launches, and has the adapter at work on it until it is let go.
func (w *ward) underway() (allocation string, letGo func()) {
	w.t.Helper()
	p, until := w.plays(), make(chan struct{})
	does(&p.create, halts(until, alive))
	allocation = w.rent()
	_, operation, err := w.launching(func(in *gql.LaunchInstanceInput) { in.AllocationIds = []string{allocation} })
	w.fine(err)
	w.about.ID = operation
	w.eventually("the adapter works", func() error { return w.at(operation, "await") })
	return allocation, func() { close(until) }
}

// recordDrills are those of rows that no verb leaves: somebody wrote them by hand, or another build did.
var recordDrills = map[string]drill{
	// A worker that is halted looks alive until its lease ends, and takes nothing.
	"instance-stuck/created/pending": {
		fault: func(w *ward) { freezeWorker(w); w.launch() },
		cure:  launched,
	},
	"instance-stuck/created/prepare-failed": {
		fault: func(w *ward) {
			allocation, instance := w.rent(), ""
			w.asleep(func() {
				var err error
				instance, w.about.ID, err = w.launching(func(in *gql.LaunchInstanceInput) {
					in.AllocationIds = []string{allocation}
				})
				w.fine(err)
				w.tamper(`UPDATE allocation SET status = 'RELEASED', released_at = now() WHERE id = $1`, allocation)
			})
			require.Equal(w.t, gql.OperationStateFailed, w.ends(w.about.ID).State)
			w.mend = func() {
				w.succeeds(w.decommission(instance, false))
				w.running()
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"instance-stuck/waits/allocation-failed": {
		fault: func(w *ward) {
			allocation, letGo := w.underway()
			w.tamper(`UPDATE allocation SET status = 'FAILED' WHERE id = $1`, allocation)
			w.mend = func() {
				w.succeeds(w.release(allocation))
				letGo()
				w.launch()
			}
		},
		cure: launched,
	},
	"instance-stuck/waits/allocation-pending": {
		fault: func(w *ward) {
			allocation, letGo := w.underway()
			w.tamper(`UPDATE allocation SET status = 'REQUESTED' WHERE id = $1`, allocation)
			w.mend = func() { // it becomes ready
				w.tamper(`UPDATE allocation SET status = 'READY' WHERE id = $1`, allocation)
				letGo()
			}
		},
		cure: launched,
	},
	"instance-stuck/waits/plan-unknown": {
		fault: func(w *ward) {
			w.asleep(func() {
				w.launch()
				w.tamper(`UPDATE operation SET step_plan = 'of a later build' WHERE id = $1`, w.about.ID)
			})
		},
		cure: func(w *ward) {
			_, err := gql.BreakGlassEndOperation(w.ctx, w.operator,
				gql.BreakGlassEndOperationInput{OperationId: w.about.ID,
					Reason: "no worker of the build that began it is left"})
			w.fine(err)
			w.ends(w.about.ID)
		},
	},
}
