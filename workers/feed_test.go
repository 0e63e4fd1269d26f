package workers_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/pgtest"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// atOnce makes the adapter end every operation as soon as it has accepted it. Before it answers, it wakes the waiter
// for its status, which finds nothing.
func (s *script) atOnce(hub *event.Hub) {
	s.with(func() {
		s.onPut = func(d adapter.Dispatch) (int, any) {
			hub.Wake(event.WordTopic(ids.ID(d.OperationID)))
			accepted := adapter.Status{OperationID: d.OperationID, Attempt: d.Attempt, State: adapter.StateAccepted}
			s.puts = append(s.puts, d)
			s.sayLocked(adapter.Status{OperationID: d.OperationID, Attempt: d.Attempt, State: adapter.StateSucceeded,
				Percent: 100, Phase: "done"})
			return 202, accepted
		}
	})
}

func TestAnOperationThatEndsAtOnceIsClaimedOnceForItsDispatchAndItsWord(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("swift")
	s.atOnce(l.hub)
	w := l.world("swift", s.url)
	probed := l.own.Manifest.GetX(t.Context(), w.manifest)
	w.manifest = ids.New(ids.Manifest) // the same without readiness probes, which take a claim of their own
	l.own.Manifest.Create().SetID(w.manifest).SetAppID(probed.AppID).SetAppSlug(probed.AppSlug).SetVersion("1.0.1").
		SetStage(lifecycle.StageStaged).
		SetDigest("sha256:1").SetDocument(
		[]byte(`{"components":[{"key":"peer","displayName":"Peer","min":1,"max":8,"default":2}]}`)).
		SetAdapterName(w.adapter).SaveX(t.Context())
	l.work()
	l.until("its feed is read", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.asked > 0
	})
	it := l.launch(w, time.Minute)
	op := l.ended(it.create)
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	require.Equal(t, 1, op.ClaimEpoch, "it was kept in hand until the word came")
	l.once(it, "apps.operation.started", "apps.instance.starting", "apps.instance.running", "apps.operation.succeeded")
}

func TestAStatusThatCannotBeStoredLeavesTheOthersOfItsPage(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("mixed")
	l.work()
	w := l.world("mixed", s.url)
	good, bad := l.launch(w, time.Minute), l.launch(w, time.Minute)
	s.dispatched(string(good.create))
	s.dispatched(string(bad.create))
	// A number that JSON can say and jsonb cannot keep.
	s.with(func() {
		s.sayLocked(adapter.Status{OperationID: string(bad.create), Attempt: 1, State: adapter.StateRunning,
			Phase:    "odd",
			Evidence: map[string]json.RawMessage{"n": json.RawMessage(`1e999999`)}})
		s.sayLocked(adapter.Status{OperationID: "op_unknown", Attempt: 1, State: adapter.StateRunning})
		s.sayLocked(adapter.Status{OperationID: string(good.create), Attempt: 1, State: adapter.StateSucceeded,
			Percent: 100})
	})
	op := l.ended(good.create)
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	require.Nil(t, l.op(bad.create).EndedAt)
	s.succeed(string(bad.create), 1)
	require.Equal(t, lifecycle.OperationSucceeded, l.ended(bad.create).State, "and its next one is stored")
}

// What the adapter's feed brings is stored without a wait for the disk where it appends no event: a crash forgets it
// together with the feed's cursor, or not at all.
func TestWhatTheFeedBroughtIsThereAgainAfterACrashOfTheDatabase(t *testing.T) {
	t.Parallel()
	server := alone{pgtest.NewCluster(t)}
	// nobody writes the log but those who wait for it
	server.Do("postgres", `ALTER SYSTEM SET wal_writer_delay = '10s'`)
	server.Do("postgres", `SELECT pg_reload_conf()`)
	server.Migrated("app")
	l := newLabOn(t, server)
	s := l.script("crash")
	s.with(func() {
		s.onPut = func(d adapter.Dispatch) (int, any) {
			if len(s.puts) == 0 {
				s.sayLocked(adapter.Status{OperationID: d.OperationID, Attempt: d.Attempt, State: adapter.StateRunning,
					Percent: 50})
			}
			s.puts = append(s.puts, d)
			return http.StatusAccepted, adapter.Status{OperationID: d.OperationID, Attempt: d.Attempt,
				State: adapter.StateAccepted}
		}
	})
	w := l.world("crash", s.url)
	l.work()
	it := l.launch(w, 5*time.Minute)
	const stored = `SELECT count(*) FROM operation WHERE adapter_status ->> 'state' = 'running' AND percent > 40`
	l.reaches(stored, 1)
	require.NoError(t, server.Kill())
	server.Restart()
	l.reaches(stored, 1)
	s.succeed(string(it.create), 1)
	op := l.ended(it.create)
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	s.oneEffect(string(it.create))
	l.once(it, "apps.operation.started", "apps.instance.running", "apps.operation.succeeded")
}
