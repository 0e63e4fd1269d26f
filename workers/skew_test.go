package workers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/workers/parts"
)

// childClock is a worker process's clock: the machine's, off by what a file says; nil without one.
func childClock() func() time.Time {
	file := os.Getenv("WORKERS_TEST_SKEW")
	if file == "" {
		return nil
	}
	return func() time.Time {
		content, _ := os.ReadFile(file)
		by, _ := time.ParseDuration(string(content))
		return time.Now().Add(by)
	}
}

// misdated are the times of which the test knows that they are wrong: none may be before it began or in the future.
var misdated = []string{
	`SELECT id || ' operation' FROM operation WHERE coalesce(started_at, created_at) < $1
		OR greatest(started_at, ended_at, cancel_requested_at, forced_at) > now()`,
	`SELECT operation_id || ' ' || name FROM operation_step WHERE started_at < $1
		OR greatest(started_at, ended_at) > now()`,
	`SELECT id || ' due' FROM operation WHERE ended_at IS NULL AND claimed_by IS NULL
		AND next_run_at > now() + interval '5 minutes' AND $1 < now()`,
	`SELECT id || ' task' FROM node_task WHERE created_at < $1 OR created_at > now()`,
	`SELECT id || ' event' FROM app_instance_event WHERE occurred_at < $1 OR occurred_at > now()`,
	`SELECT id || ' worker' FROM worker_process WHERE heartbeat_at < $1 OR heartbeat_at > now()`,
}

func TestAProcessWhoseClockTurnsOffStopsAndNothingIsEarlyOrLate(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			began := l.db.Now()
			s := l.script("skewed")
			g := s.gate()
			workers := l.processes(2)
			file := filepath.Join(t.TempDir(), "skew")
			victim := l.another(workers, l.pg.AdminDSN(), "WORKERS_TEST_SKEW="+file)
			all, holders := l.crowded(s, g)
			require.NotZero(t, holders[victim])

			require.NoError(t, os.WriteFile(file, []byte(by.String()), 0o600))
			turned := time.Now()
			close(g.open)
			require.Error(t, workers[victim].Wait(), "it stops, and says why")
			require.Less(t, time.Since(turned), 10*time.Second)
			l.endedOnce(s, all)
			for _, sql := range misdated {
				l.none(sql, began.Add(-time.Second))
			}
		})
	}
}

// none asserts that a query finds nothing.
func (l *lab) none(sql string, args ...any) {
	l.Helper()
	var found []string
	require.NoError(l.TB, l.pool().QueryRow(l.Context(), fmt.Sprintf(`SELECT array_agg(f) FROM (%s) AS x
		(f)`, sql), args...).Scan(&found))
	require.Empty(l.TB, found, sql)
}

// Another server's clock is behind: the task that it wrote after the proof's has the lower id, and has ended.
func TestATaskThatWasAskedForAfterAProofIsLaterWhateverItsIDSays(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	it := l.launch(l.world("later", "http://127.0.0.1:1"), time.Minute)
	before, early, proof := ids.New(ids.NodeTask), ids.New(ids.NodeTask), ids.New(ids.NodeTask)
	task := func(id ids.ID, key string) {
		l.own.NodeTask.Create().SetID(id).SetTenantID(it.tenant).SetProjectID(it.project).SetInstanceID(it.instance).
			SetMemberID(it.members[0]).SetNodeID(it.node).SetKind(lifecycle.TaskRun).SetSpecDigest([]byte("x")).
			SetState(lifecycle.TaskSucceeded).SetTimeoutSeconds(1).SetIdempotencyKey(key).SetEndedAt(time.Now()).
			SaveX(t.Context())
	}
	later := func() bool {
		found, err := parts.LaterThan(t.Context(), l.pool(), &db.Operation{ID: it.create},
			[]parts.ResidueProof{{Member: it.members[0], Task: proof}})
		require.NoError(t, err)
		return found
	}
	task(early, "before")
	task(proof, "proof")
	require.False(t, later(), "what was asked for before is no later")
	task(before, "after")
	require.Less(t, string(before), string(proof))
	require.True(t, later())
}
