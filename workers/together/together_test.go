package together_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/queue"
	"github.com/gpuaas/app-platform/workers/together"
)

const patience = 30 * time.Second

// world is a writer and some claimed operations, each on an instance of its own.
type world struct {
	*platformtest.Kit
	t      *testing.T
	writer *together.Writer
	held   []*queue.Held

	mu    sync.Mutex
	wrote map[ids.ID][]time.Time // when the transactions were that each was written in
}

func setup(t *testing.T, operations int) *world {
	kit := platformtest.New(t)
	w := &world{Kit: kit, t: t, wrote: make(map[ids.ID][]time.Time),
		writer: together.New(kit.DB, authz.System("worker"), slog.New(slog.DiscardHandler))}
	project := kit.Project(kit.Tenant())
	node, _ := kit.Node(4)
	_, stored := kit.Launchable(project, "apps")
	for range operations {
		kit.Operation(kit.Instance(project, stored, lifecycle.InstanceRunning, kit.Allocation(project, node)),
			lifecycle.MemberCordon, lifecycle.OperationRunning)
	}
	var err error
	w.held, _, err = queue.Claim(t.Context(), kit.DB.Worker(), ids.New(ids.Worker), queue.Want{Limit: operations})
	require.NoError(t, err)
	require.Len(t, w.held, operations)
	return w
}

// job marks the operation, unless it fails with an error, after what it waits for.
func (w *world) job(held *queue.Held, fails error, waits <-chan struct{}) together.Job {
	return together.Job{Held: held, Reads: func(*pgx.Batch) {},
		Write: func(_ context.Context, t *tx.Tx, _ *db.Instance, writes *pgx.Batch) error {
			w.mu.Lock()
			w.wrote[held.ID] = append(w.wrote[held.ID], t.Now)
			w.mu.Unlock()
			writes.Queue(`UPDATE operation SET message = 'written' WHERE id = $1`, held.ID)
			if waits != nil {
				<-waits
			}
			return fails
		}}
}

func (w *world) written() int { return w.Count("operation", "message = 'written'") }

// busy keeps the writer's transactions under way until the returned function is called, so that what comes is joined.
func (w *world) busy(jobs ...together.Job) (ended func()) {
	var all sync.WaitGroup
	for i, job := range jobs {
		all.Go(func() { require.NoError(w.t, w.writer.Do(w.t.Context(), job)) })
		require.Eventually(w.t, func() bool { // one after the other: each in a transaction of its own
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.wrote) == i+1
		}, patience, time.Millisecond)
	}
	return all.Wait
}

func TestWhatComesWhileOthersAreWrittenIsWrittenInOneTransaction(t *testing.T) {
	t.Parallel()
	w := setup(t, 6)
	open := make(chan struct{})
	first := w.busy(w.job(w.held[0], nil, open), w.job(w.held[1], nil, open))
	var all sync.WaitGroup
	for _, held := range w.held[2:] {
		all.Go(func() { require.NoError(t, w.writer.Do(t.Context(), w.job(held, nil, nil))) })
	}
	require.Eventually(t, func() bool { return w.writer.Waiting() == 4 }, patience, time.Millisecond)
	close(open)
	first()
	all.Wait()
	require.Equal(t, 6, w.written())
	for _, held := range w.held[3:] {
		require.Equal(t, w.wrote[w.held[2].ID], w.wrote[held.ID], "the transaction's one moment")
	}
}

func TestWhatOneMeetsIsNobodyElses(t *testing.T) {
	t.Parallel()
	w := setup(t, 8)
	refusal := errors.New("refused")
	open := make(chan struct{})
	first := w.busy(w.job(w.held[0], nil, open), w.job(w.held[1], nil, open))
	fails, fenced, locked, broken, panics := w.held[2], w.held[3], w.held[4], w.held[5], w.held[6]
	w.SQL(`UPDATE operation SET claim_epoch = claim_epoch + 1 WHERE id = $1`, fenced.ID)
	other, err := w.Admin.Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), `SELECT FROM instance WHERE id = $1 FOR UPDATE`, *locked.InstanceID)
	require.NoError(t, err)
	jobs := map[*queue.Held]together.Job{fails: w.job(fails, refusal, nil), fenced: w.job(fenced, nil, nil),
		locked: w.job(locked, nil, nil), broken: w.job(broken, nil, nil), panics: w.job(panics, nil, nil),
		w.held[7]: w.job(w.held[7], nil, nil)}
	one := jobs[panics]
	one.Write = func(context.Context, *tx.Tx, *db.Instance, *pgx.Batch) error { panic("of a job") }
	jobs[panics] = one
	one = jobs[broken]
	one.Write = func(_ context.Context, _ *tx.Tx, _ *db.Instance, writes *pgx.Batch) error {
		// no such move
		writes.Queue(`UPDATE operation SET state = 'PENDING', message = 'written' WHERE id = $1`, broken.ID)
		return nil
	}
	jobs[broken] = one
	came := make(map[*queue.Held]chan error)
	for held, job := range jobs {
		came[held] = make(chan error, 1)
		go func() { came[held] <- w.writer.Do(t.Context(), job) }()
	}
	require.Eventually(t, func() bool { return w.writer.Waiting() == len(jobs) }, patience, time.Millisecond)
	close(open)
	first()
	select {
	case err := <-came[w.held[7]]:
		require.NoError(t, err)
	case <-time.After(15 * time.Second): // waiting for the lock would be given up twice, after 10 s each
		require.FailNow(t, "it waits for another's lock")
	}
	require.ErrorIs(t, <-came[fails], refusal)
	require.ErrorIs(t, <-came[fenced], queue.ErrFenced)
	require.ErrorContains(t, <-came[broken], "may not go from")
	require.ErrorContains(t, <-came[panics], "panic")
	require.Equal(t, 3, w.written(), "nothing of those that failed, and nothing yet of the one that waits for its lock")
	require.Empty(t, came[locked])
	require.NoError(t, other.Rollback(t.Context()))
	require.NoError(t, <-came[locked])
	require.Equal(t, 4, w.written())
	require.Zero(t, w.Count("operation", "message = 'written' AND id = ANY ($1)",
		[]ids.ID{fails.ID, fenced.ID, broken.ID, panics.ID}))
}
