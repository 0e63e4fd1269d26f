package workers_test

import (
	"context"
	"flag"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/pgtest"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

var promotions = flag.Int("workers.promotions", 0, "operations that run while a replica is promoted; 0 leaves that out")

// pair is a database with a streaming replica.
type pair struct{ primary, standby *pgtest.Cluster }

// AdminDSN implements place.
func (p pair) AdminDSN() string { return pgtest.Hosts("postgres", "app", p.primary, p.standby) }

// OwnerDSN implements place.
func (p pair) OwnerDSN() string {
	return pgtest.Hosts("app_owner", "app", p.primary, p.standby) + "&target_session_attrs=read-write"
}

func newPair(t testing.TB, synchronous bool) pair {
	t.Helper()
	p := pair{primary: pgtest.NewCluster(t)}
	p.primary.Migrated("app")
	p.standby = p.primary.Standby()
	if synchronous {
		p.primary.Do("postgres", `ALTER SYSTEM SET synchronous_standby_names = '*'`)
		p.primary.Do("postgres", `SELECT pg_reload_conf()`)
		p.primary.Await(`SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'`)
	}
	return p
}

// reader follows a project's feed from its beginning, and begins again when its cursor has expired.
type reader struct {
	mu      sync.Mutex
	got     []ids.ID
	expired int
}

func (r *reader) length() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

// take notes a page, or that the place before it was lost.
func (r *reader) take(page []*event.Event, lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if lost {
		r.got, r.expired = nil, r.expired+1
	}
	for _, each := range page {
		r.got = append(r.got, each.ID)
	}
}

// quota is an adapter that is done with as many operations as it may, and works on the others; what it was sent before,
// it knows.
type quota struct {
	*script
	taken []adapter.Dispatch // in the order in which they came; guarded by the script's lock, as is most
	most  int
}

func (l *lab) quota(name string, most int) *quota {
	q := &quota{script: l.script(name), most: most}
	q.onPut = q.accept
	return q
}

// accept takes a dispatch. The lock is held.
func (q *quota) accept(d adapter.Dispatch) (int, any) {
	q.puts = append(q.puts, d)
	if known, sent := q.status[d.OperationID]; !sent || known.Attempt < d.Attempt {
		q.taken = append(q.taken, d)
		state := adapter.StateRunning
		if len(q.taken) <= q.most {
			state = adapter.StateSucceeded
		}
		q.sayLocked(adapter.Status{OperationID: d.OperationID, Attempt: d.Attempt, State: state, Phase: "working",
			Percent: 50})
	}
	return http.StatusAccepted, q.status[d.OperationID]
}

// allow raises the number.
func (q *quota) allow(most int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, d := range q.taken {
		if i >= q.most && i < most {
			q.sayLocked(adapter.Status{OperationID: d.OperationID, Attempt: d.Attempt, State: adapter.StateSucceeded,
				Percent: 100})
		}
	}
	q.most = most
}

func (l *lab) follow(ctx context.Context, into *reader, project ids.ID) error {
	feeds, err := event.NewFeeds(ctx, l.db.Feed())
	if err != nil {
		return err
	}
	var at event.Position
	for ctx.Err() == nil {
		found, err := feeds.Project(ctx, project, []string{"apps"}, at, 20)
		into.take(found, fault.Is(err, fault.CursorExpired))
		switch {
		case fault.Is(err, fault.CursorExpired):
			at = event.Position{}
		case len(found) > 0:
			at = event.PositionOf(found[len(found)-1])
		}
		if err != nil || len(found) == 0 {
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// count asks the database, whichever takes writes; -1 while none answers.
func (l *lab) count(sql string) (n int) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := l.pool().QueryRow(ctx, sql).Scan(&n); err != nil {
		return -1
	}
	return n
}

// reaches waits until a query answers at least a number.
func (l *lab) reaches(sql string, least int) {
	l.Helper()
	require.Eventually(l.TB, func() bool { return l.count(sql) >= least }, 5*time.Minute, 50*time.Millisecond, sql)
}

// table is a project's events in the order of its feed.
func (l *lab) table(project ids.ID) []ids.ID {
	l.Helper()
	found, err := l.pool().Query(l.Context(), `SELECT id FROM app_instance_event WHERE project_id = $1
		ORDER BY generation, xid, "position"`, project)
	require.NoError(l.TB, err)
	stored, err := pgx.CollectRows(found, pgx.RowTo[ids.ID])
	require.NoError(l.TB, err)
	return stored
}

func TestReplicasArePromotedWhileOperationsRun(t *testing.T) {
	if *promotions == 0 {
		t.Skip("make chaos runs it, with -workers.promotions=300; service/ledger/event has the short one")
	}
	t.Parallel()
	const ended = `SELECT count(*) FROM operation WHERE ended_at IS NOT NULL`
	for name, synchronous := range map[string]bool{"synchronous": true, "asynchronous": false} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, synchronous)
			l := newLabOn(t, p)
			s := l.quota("promoted", *promotions/4)
			w := l.world("promoted", s.url)
			all := make([]launched, *promotions)
			for i := range all {
				all[i] = l.launch(w, 20*time.Minute)
			}
			var seen reader
			stop := l.background(func(ctx context.Context) error { return l.follow(ctx, &seen, w.project) })
			l.work()
			l.reaches(ended, len(all)/4)
			if !synchronous { // what follows is a future that is lost
				p.standby.CutOff()
			}
			s.allow(len(all) / 2)
			if !synchronous {
				l.reaches(ended, len(all)/2)
				lost := l.table(w.project)
				require.Eventually(t, func() bool { return seen.length() >= len(lost) }, patience, 20*time.Millisecond)
			}
			require.NoError(t, p.primary.Kill())
			p.standby.Promote()
			s.allow(10 * len(all)) // also what is sent once more
			l.reaches(ended, len(all))

			for _, each := range all {
				op := l.op(each.create)
				require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
				s.oneEffect(string(each.create))
				l.once(each, "apps.operation.started", "apps.instance.running", "apps.operation.succeeded")
			}
			stored := l.table(w.project)
			require.Zero(t, l.count(`SELECT (SELECT sum(revision) FROM instance) - (SELECT count(*)
				FROM app_instance_event)`),
				"no number of a timeline is missing")
			require.Eventually(t, func() bool { return seen.length() >= len(stored) }, patience, 20*time.Millisecond)
			stop()
			stored = l.table(w.project) // instances go on to be observed
			require.Equal(t, stored[:min(len(seen.got), len(stored))], seen.got,
				"the reader has what the table has, in its order")
			if synchronous {
				require.Zero(t, seen.expired, "nothing was lost")
			} else {
				require.Equal(t, 1, seen.expired, "the reader was told that its place was lost")
			}
		})
	}
}
