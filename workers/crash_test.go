package workers_test

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/ent/generated/db/nodetask"
	dbstep "github.com/gpuaas/app-platform/ent/generated/db/operationstep"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers"
)

// takeOver is the longest that a dead worker's operation may wait for the next one.
const takeOver = 15 * time.Second

// TestMain is a worker process of its own when a test starts it as one.
func TestMain(m *testing.M) {
	if dsn := os.Getenv("WORKERS_TEST_CHILD"); dsn != "" {
		if err := child(dsn); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child works until it is killed.
func child(dsn string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	database, err := tx.Open(ctx, dsn, tx.Options{Connections: fewConnections, Now: childClock()})
	if err != nil {
		return err
	}
	hub := event.NewHub(database.Worker(), log)
	database.SetHints(hub)
	go func() { _ = hub.Run(ctx) }() // ends with the process
	ring, err := token.LoadKeyring(os.Getenv("WORKERS_TEST_KEYS"), os.Getenv("WORKERS_TEST_URL"))
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return database.KeepTime(ctx) })
	group.Go(func() error {
		return workers.Run(ctx, workers.Config{DB: database, Hub: hub, Keys: ring, Dial: dial.Loopback(),
			PlatformURL: os.Getenv("WORKERS_TEST_URL") + "/graphql", Log: log, Pace: pace})
	})
	return group.Wait()
}

// spawn starts a worker as a real process; it is killed at the end of the test at the latest.
func (l *lab) spawn() *exec.Cmd { return l.spawnOn(l.pg.AdminDSN()) }

// spawnOn starts a worker process that reaches the database at dsn.
func (l *lab) spawnOn(dsn string, environment ...string) *exec.Cmd {
	l.Helper()
	return l.spawnOf(os.Args[0], dsn, environment...)
}

// spawnOf starts a worker process of the build that a program is the tests of.
func (l *lab) spawnOf(program, dsn string, environment ...string) *exec.Cmd {
	l.Helper()
	command := exec.Command(program, "-test.run=^$")
	command.Env = append(os.Environ(), "WORKERS_TEST_CHILD="+dsn, "WORKERS_TEST_KEYS="+l.keyDir,
		"WORKERS_TEST_URL="+l.platform.URL)
	command.Env = append(command.Env, environment...)
	command.Stderr = os.Stderr
	require.NoError(l.TB, command.Start())
	l.Cleanup(func() {
		_ = command.Process.Kill()
		_, _ = command.Process.Wait()
	})
	return command
}

func TestKilledWorkersOperationIsTakenOverWhileTheAdapterGoesOn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("survivor")
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	s.onPut = func(d adapter.Dispatch) (int, any) {
		// The first dispatch is kept waiting for its answer, so that its worker holds the claim.
		if len(s.puts) == 0 {
			s.puts = append(s.puts, d)
			s.sayLocked(adapter.Status{OperationID: d.OperationID, Attempt: d.Attempt, State: adapter.StateRunning})
			s.mu.Unlock()
			entered <- struct{}{}
			<-leave
			s.mu.Lock()
			return 500, adapter.ErrorBody{Code: "LATE", Message: "too late"}
		}
		return 0, nil
	}
	defer close(leave)
	first := l.spawn()
	it := l.launch(l.world("survivor", s.url), 2*time.Minute)
	select {
	case <-entered:
	case <-time.After(patience):
		require.Fail(t, "the worker never dispatched")
	}
	require.NotNil(t, l.op(it.create).ClaimedBy, "it is killed while it holds the claim")
	require.NoError(t, first.Process.Signal(syscall.SIGKILL))
	_, _ = first.Process.Wait()
	killed := time.Now()

	phase, percent := "rendering", 30
	in := operation.ReportInput{OperationID: it.create, Attempt: 1, Phase: &phase, Percent: &percent}
	_, err := operation.Report(l.caller("Bearer "+s.dispatched(string(it.create))[0].Platform.Token), l.db, in)
	require.NoError(t, err, "the adapter's reports count though nobody holds the operation")
	require.Equal(t, "rendering", l.op(it.create).Phase)

	epoch := l.op(it.create).ClaimEpoch
	l.spawn()
	l.until("another worker takes over", func() bool { return l.op(it.create).ClaimEpoch > epoch })
	require.Less(t, time.Since(killed), takeOver)
	s.succeed(string(it.create), 1)
	op := l.ended(it.create)
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	require.Equal(t, 1, op.DispatchAttempt, "a take-over is no new dispatch")
	s.oneEffect(string(it.create))
}

func TestStoppingWorkerHandsOverAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("handover")
	entered, leave := make(chan struct{}, 8), make(chan struct{})
	s.onPut = func(d adapter.Dispatch) (int, any) {
		if len(s.puts) == 0 {
			s.puts = append(s.puts, d)
			s.mu.Unlock()
			entered <- struct{}{}
			<-leave
			s.mu.Lock()
			return 500, adapter.ErrorBody{Code: "LATE", Message: "too late"}
		}
		return 0, nil
	}
	defer close(leave)
	stop := l.work()
	it := l.launch(l.world("handover", s.url), time.Minute)
	<-entered
	stopped := time.Now()
	stop()
	require.Less(t, time.Since(stopped), 5*time.Second)
	require.Nil(t, l.op(it.create).ClaimedBy)
	require.Zero(t, l.own.WorkerProcess.Query().CountX(t.Context()))
	l.work()
	l.until("the next worker dispatches", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.puts) > 1
	})
	s.succeed(string(it.create), 1)
	require.Equal(t, lifecycle.OperationSucceeded, l.ended(it.create).State)
	s.oneEffect(string(it.create))
}

// A lost lease at any moment is the same as a crash at that moment: whatever was not stored is done
// again by the next holder, and the old one writes nothing any more. So steps are run twice, and cut
// between their effect and the note of it, all along a launch and a teardown.
func TestLeaseLostAtAnyMomentChangesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	url := l.kit("chaos", joins)
	l.work()
	l.work()
	w := l.world("chaos", url)
	for range 5 {
		it := l.launch(w, time.Minute)
		op := l.robbed(it.create)
		require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
		require.Equal(t, 1, op.DispatchAttempt)
		l.once(it, "apps.operation.started", "apps.instance.starting", "apps.instance.running",
			"apps.operation.succeeded")
		gone := l.robbed(l.decommission(it, time.Minute))
		require.Equal(t, lifecycle.OperationSucceeded, gone.State, gone.ErrorMessage)
		l.once(it, "apps.instance.deleted")
		for _, step := range append(l.steps(op.ID), l.steps(gone.ID)...) {
			require.Equal(t, lifecycle.StepSucceeded, step.State)
		}
		require.Len(t, l.steps(op.ID), 5)
		rounds := l.own.NodeTask.Query().Where(nodetask.OperationID(op.ID)).CountX(t.Context())
		require.Equal(t, 2, rounds, "one probe a member, however often its step was run")
		l.own.Allocation.UpdateOneID(w.allocation).ClearInstanceID().ExecX(t.Context())
	}
}

// robbed waits for the end of an operation whose lease is taken away all along.
func (l *lab) robbed(id ids.ID) *db.Operation {
	l.Helper()
	stop := l.rob(id)
	op := l.ended(id)
	stop()
	return op
}

// rob takes an operation's lease away every few milliseconds, a bounded number of times: workers overlap
// at every place of every step.
func (l *lab) rob(id ids.ID) (stop func()) {
	return l.background(func(ctx context.Context) error {
		for range 150 {
			_, err := l.db.Worker().Exec(ctx, `UPDATE operation SET claimed_by = NULL, next_run_at = now()
				WHERE id = $1 AND ended_at IS NULL AND claimed_by IS NOT NULL`, id)
			if err != nil {
				return err
			}
			l.hub.Wake(event.QueueTopic)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(rand.N(4 * time.Millisecond)):
			}
		}
		return nil
	})
}

// once requires that there is exactly one event of each of the types.
func (l *lab) once(it launched, types ...string) {
	l.Helper()
	counts := map[string]int{}
	for _, one := range l.told(it) {
		counts[one]++
	}
	for _, one := range types {
		require.Equal(l.TB, 1, counts[one], one)
	}
}

func (l *lab) steps(id ids.ID) []*db.OperationStep {
	return l.own.OperationStep.Query().Where(dbstep.OperationID(id)).Order(dbstep.ByOrdinal()).AllX(l.Context())
}
