package workers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

// claim takes up to limit operations for a worker that is not running.
func (l *lab) claim(worker ids.ID, limit int) []*queue.Held {
	l.Helper()
	held, _, err := queue.Claim(l.Context(), l.db.Worker(), worker, queue.Want{Limit: limit})
	require.NoError(l.TB, err)
	return held
}

func TestFormerHolderWritesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	it := l.launch(l.world("fence", "http://127.0.0.1:1"), time.Minute)
	one, two := ids.New(ids.Worker), ids.New(ids.Worker)
	first := l.claim(one, 1)[0]
	require.Empty(t, l.claim(two, 1), "it is held")
	lock := func(held *queue.Held) error {
		var locking *queue.Locking
		return l.db.AsPipelined(t.Context(), authz.System("test"), func(batch *pgx.Batch) {
			locking = held.QueueLock(batch)
		},
			func(context.Context, *tx.Tx, *pgx.Batch) error {
				_, err := locking.Done()
				return err
			})
	}
	require.NoError(t, lock(first))
	require.NoError(t, queue.HandOver(t.Context(), l.db.Worker(), one))
	require.ErrorIs(t, lock(first), queue.ErrFenced, "handed over")
	again := l.claim(one, 1)[0]
	require.Equal(t, first.ClaimEpoch+1, again.ClaimEpoch)
	require.ErrorIs(t, lock(first), queue.ErrFenced, "the same worker's earlier claim")
	require.NoError(t, lock(again))
	var woken bool
	err := l.db.Worker().QueryRow(t.Context(), queue.ReleaseSQL, first.ID, first.ClaimEpoch, first.Worker, time.Now(),
		0, first.Reported()).Scan(&woken)
	require.ErrorIs(t, err, pgx.ErrNoRows, "a former holder releases nothing")
	require.Equal(t, one, *l.op(it.create).ClaimedBy)
	l.own.Operation.UpdateOneID(it.create).SetEndedAt(time.Now()).ExecX(t.Context())
	require.ErrorIs(t, lock(again), queue.ErrFenced, "an ended operation")
}

func TestNewsThatComesWhileItIsHeldIsNotLost(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.launch(l.world("news", "http://127.0.0.1:1"), time.Minute)
	held := l.claim(ids.New(ids.Worker), 1)[0]
	release := func() (woken bool) {
		err := l.db.Worker().QueryRow(t.Context(), queue.ReleaseSQL, held.ID, held.ClaimEpoch, held.Worker,
			time.Now().Add(time.Hour), 0, held.Reported()).Scan(&woken)
		require.NoError(t, err)
		return woken
	}
	_, err := l.db.Worker().Exec(t.Context(), `SELECT platform.wake_operation($1)`, held.ID)
	require.NoError(t, err)
	require.True(t, release(), "it is due at once, not in an hour")
	held = l.claim(held.Worker, 1)[0]
	require.False(t, release())
	require.Empty(t, l.claim(held.Worker, 1))
	_, err = l.db.Worker().Exec(t.Context(), `UPDATE operation SET next_run_at = now()`)
	require.NoError(t, err)
	held = l.claim(held.Worker, 1)[0]
	_, err = l.db.Worker().Exec(t.Context(), `UPDATE operation SET adapter_status = '{"state": "succeeded"}'`)
	require.NoError(t, err)
	require.True(t, release(), "an end that was reported while it was held, and that its holder does not know")
	held = l.claim(held.Worker, 1)[0]
	require.Equal(t, "succeeded", held.Reported())
	require.False(t, release(), "nothing that its holder knows makes it due")
}

func TestBacklogOfOneTenantDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	big, small := l.world("big", "http://127.0.0.1:1"), l.world("small", "http://127.0.0.1:1")
	for _, one := range []struct {
		world
		count int
		ago   string // how long the first one has been due
	}{{big, 700, "1 hour"}, {small, 2, "1 second"}} {
		_, err := l.pool().Exec(t.Context(), `INSERT INTO operation (id, tenant_id, project_id, kind, state,
			requester_kind,
			requester_id, correlation_id,
			next_run_at, deadline, created_at, allocation_id)
			SELECT 'op_' || $1 || n, $2, $3, 'ALLOCATION_RELEASE', 'PENDING', 'USER', 'u', 'c', now() - $6::interval * (701 - n)
			/ 700, now() + interval '1 hour', now(), $4
			FROM generate_series(1, $5) n`, one.adapter, one.tenant, one.project, one.allocation, one.count, one.ago)
		require.NoError(t, err)
	}
	held := l.claim(ids.New(ids.Worker), 4)
	counts := map[ids.ID]int{}
	for _, one := range held {
		counts[one.TenantID]++
	}
	require.Equal(t, map[ids.ID]int{big.tenant: 2, small.tenant: 2}, counts,
		"they take turns, though the backlog is older and fills the window")
}

func TestTwoClaimsNeverTakeTheSame(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w := l.world("race", "http://127.0.0.1:1")
	for range 20 {
		l.launch(w, time.Minute)
	}
	taken := make(chan []*queue.Held, 4)
	for range 4 {
		go func() {
			held, _, err := queue.Claim(context.Background(), l.db.Worker(), ids.New(ids.Worker), queue.Want{Limit: 8})
			if err != nil {
				l.Error(err)
			}
			taken <- held
		}()
	}
	seen := map[ids.ID]bool{}
	for range 4 {
		for _, one := range <-taken {
			require.False(t, seen[one.ID], fmt.Sprint(one.ID))
			seen[one.ID] = true
		}
	}
}
