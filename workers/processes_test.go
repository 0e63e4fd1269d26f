package workers_test

import (
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// crowd is more operations than two worker processes carry on at once.
const crowd = 40

// takenForDead is less than the ten seconds without a heartbeat after which a process's claims are released: the last
// one may be five seconds older than its first dispatch, and the time at which a token ends has whole seconds.
const takenForDead = 4 * time.Second

// gate keeps every first dispatch of an operation waiting for its answer until it is opened, so that the
// workers hold their claims; then the adapter ends each operation well.
type gate struct {
	entered chan string
	open    chan struct{}
}

func (s *script) gate() *gate {
	g := &gate{entered: make(chan string, 4*crowd), open: make(chan struct{})}
	s.lab.Cleanup(func() { // a test that fails before it opens the gate must not wait for the adapter for ever
		select {
		case <-g.open:
		default:
			close(g.open)
		}
	})
	s.waitAt(g)
	return g
}

func (s *script) waitAt(g *gate) {
	s.onPut = func(d adapter.Dispatch) (int, any) {
		s.puts = append(s.puts, d)
		if _, known := s.status[d.OperationID]; !known {
			s.status[d.OperationID] = adapter.Status{OperationID: d.OperationID, Attempt: d.Attempt,
				State: adapter.StateAccepted}
		}
		s.mu.Unlock()
		g.entered <- d.OperationID
		<-g.open
		s.mu.Lock()
		if !s.status[d.OperationID].State.Terminal() {
			s.sayLocked(adapter.Status{OperationID: d.OperationID, Attempt: d.Attempt, State: adapter.StateSucceeded,
				Percent: 100})
		}
		return 202, s.status[d.OperationID]
	}
}

// crowded launches a crowd for two tenants and waits until every dispatch of it waits at the gate. It
// answers the operations, and which worker holds how many.
func (l *lab) crowded(s *script, g *gate) ([]launched, map[ids.ID]int) {
	l.Helper()
	name := s.verifier.Audience
	s.twin = l.script(name + "-two") // one adapter alone may have half of a process's slots
	s.twin.waitAt(g)
	one, two := l.world(name, s.url), l.world(name+"-two", s.twin.url)
	var all []launched
	for n := range crowd {
		of := one
		if n%2 == 1 {
			of = two
		}
		all = append(all, l.launch(of, 2*time.Minute))
	}
	for range crowd {
		select {
		case <-g.entered:
		case <-time.After(patience):
			require.Fail(l.TB, "not every operation was dispatched")
		}
	}
	holders := map[ids.ID]int{}
	for _, it := range all {
		if by := l.op(it.create).ClaimedBy; by != nil {
			holders[*by]++
		}
	}
	return all, holders
}

// processes starts as many worker processes as there are rows to be of them, and waits for those.
func (l *lab) processes(n int) map[ids.ID]*exec.Cmd {
	l.Helper()
	known := map[ids.ID]*exec.Cmd{}
	for len(known) < n {
		l.another(known, l.pg.AdminDSN())
	}
	return known
}

// another starts a worker process that reaches the database at dsn, and waits for its row; it is added to those
// known.
func (l *lab) another(known map[ids.ID]*exec.Cmd, dsn string, environment ...string) (id ids.ID) {
	l.Helper()
	return l.joined(known, l.spawnOn(dsn, environment...))
}

// joined waits for the row of a worker process that was started, and adds it to those known.
func (l *lab) joined(known map[ids.ID]*exec.Cmd, started *exec.Cmd) (id ids.ID) {
	l.Helper()
	l.until("a worker registers", func() bool {
		for _, row := range l.own.WorkerProcess.Query().AllX(l.Context()) {
			if known[row.ID] == nil {
				known[row.ID], id = started, row.ID
				return true
			}
		}
		return false
	})
	return id
}

// endedOnce waits until all have ended well, each by the one dispatch that it was accepted with.
func (l *lab) endedOnce(s *script, all []launched) {
	l.Helper()
	for _, it := range all {
		op := l.ended(it.create)
		require.Equal(l.TB, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
		require.Equal(l.TB, 1, op.DispatchAttempt)
		s.oneEffect(string(it.create))
		l.once(it, "apps.operation.started", "apps.instance.running", "apps.operation.succeeded")
	}
}

func TestSeveralProcessesShareTheWorkAndSendEachOperationOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("shared")
	g := s.gate()
	workers := l.processes(3)
	all, holders := l.crowded(s, g)
	require.Len(t, holders, len(workers), "each has a part of the work")
	close(g.open)
	l.endedOnce(s, all)
	for _, it := range all {
		sent := s.dispatched(string(it.create))
		slices.SortFunc(sent, func(a, b adapter.Dispatch) int {
			return a.Platform.TokenExpiresAt.Compare(b.Platform.TokenExpiresAt)
		})
		for i := range sent[1:] {
			require.Greater(t, sent[i+1].Platform.TokenExpiresAt.Sub(sent[i].Platform.TokenExpiresAt), takenForDead,
				"sent once, and again only where the machine left its process without a heartbeat for so long")
		}
	}
}

func TestKilledProcessAmongSeveralIsReplacedAndItsAdapterIsHeard(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("bereft")
	g := s.gate()
	workers := l.processes(3)
	all, holders := l.crowded(s, g)
	var dead ids.ID
	for id := range holders {
		dead = id
	}
	var orphaned []launched
	for _, it := range all {
		if by := l.op(it.create).ClaimedBy; by != nil && *by == dead {
			orphaned = append(orphaned, it)
		}
	}
	require.NotEmpty(t, orphaned)
	require.NoError(t, workers[dead].Process.Signal(syscall.SIGKILL))
	_, _ = workers[dead].Process.Wait()
	killed := time.Now()
	close(g.open)

	percent := 30
	in := operation.ReportInput{OperationID: orphaned[0].create, Attempt: 1, Percent: &percent}
	sent := s.dispatched(string(orphaned[0].create))[0]
	_, err := operation.Report(l.caller("Bearer "+sent.Platform.Token), l.db, in)
	require.NoError(t, err, "its report counts while nobody holds the operation")
	l.until("the dead worker's operations are taken over", func() bool {
		for _, it := range orphaned {
			if by := l.op(it.create).ClaimedBy; by != nil && *by == dead {
				return false
			}
		}
		return true
	})
	require.Less(t, time.Since(killed), takeOver)
	_, err = operation.Report(l.caller("Bearer "+sent.Platform.Token), l.db, in)
	if op := l.op(orphaned[0].create); op.EndedAt == nil {
		require.NoError(t, err, "and after somebody took it over")
	}
	l.endedOnce(s, all)
}

func TestStoppedProcessHandsOverAtOnceAndEndsWell(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("leaving")
	g := s.gate()
	workers := l.processes(3)
	all, holders := l.crowded(s, g)
	var leaver ids.ID
	for id := range holders {
		leaver = id
	}
	stopped := time.Now()
	require.NoError(t, workers[leaver].Process.Signal(syscall.SIGTERM))
	require.NoError(t, workers[leaver].Wait(), "it ends without an error")
	require.Less(t, time.Since(stopped), 5*time.Second, "though its requests to the adapter were not answered")
	held := 0
	for _, it := range all {
		if by := l.op(it.create).ClaimedBy; by != nil && *by == leaver {
			held++
		}
	}
	require.Zero(t, held, "it leaves nothing behind to be taken over")
	close(g.open)
	l.endedOnce(s, all)
}
