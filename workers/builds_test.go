package workers_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	dboperation "github.com/gpuaas/app-platform/ent/generated/db/operation"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// floorWorkers are the workers of the oldest build that may run beside this one; make floor builds them.
const floorWorkers = "../bin/floor/workers.test"

// belowFloor are the workers of the build before that.
const belowFloor = "../bin/floor/below.test"

// flight is how many operations are under way when the other build's workers come.
const flight = 150

// build is a build of the platform, and the program that its worker processes are started from.
type build struct{ name, program string }

// builds returns the floor's and this build's workers.
func builds(t *testing.T) (floor, this build) {
	t.Helper()
	floor = build{"floor", built(t, floorWorkers)}
	self, err := os.Executable()
	require.NoError(t, err)
	return floor, build{"this build", self}
}

// built returns the path of a program that make floor builds, and skips the test without it.
func built(t *testing.T, program string) string {
	t.Helper()
	program, err := filepath.Abs(program)
	require.NoError(t, err)
	if _, err := os.Stat(program); err != nil {
		t.Skip("the floor is not built; make floor builds it, make chaos runs this")
	}
	return program
}

// A worker of the last build that would fail what it does not know runs on today's schema: it registers, gives signs of
// life and claims, and the database refuses each claim. What waits is carried out by a worker of this build.
func TestAWorkerBelowTheFloorIsRefusedAtItsClaim(t *testing.T) {
	t.Parallel()
	program := built(t, belowFloor)
	l := newLab(t)
	s := l.script("below")
	l.owner(`CREATE SEQUENCE claims; GRANT ALL ON SEQUENCE claims TO PUBLIC;
		CREATE FUNCTION count_claims() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('claims'); RETURN
		NEW; END $$;
		CREATE TRIGGER a_count BEFORE UPDATE OF claimed_by ON operation FOR EACH ROW WHEN (NEW.claimed_by IS NOT NULL)
		EXECUTE FUNCTION count_claims()`)
	it := l.launch(l.world("below", s.url), time.Minute)
	cmd := l.spawnOf(program, l.pg.AdminDSN())
	l.until("its claims are refused", func() bool { return l.count(`SELECT last_value FROM claims`) > 3 })
	l.none(`SELECT id FROM operation WHERE claimed_by IS NOT NULL OR claim_epoch > 0 OR state <> 'PENDING'`)
	require.Equal(t, 1, l.count(`SELECT count(*) FROM worker_process
		WHERE heartbeat_at > now() - interval '10 seconds'`), "it lives")
	l.work()
	s.succeed(string(it.create), s.dispatched(string(it.create))[0].Attempt)
	require.Equal(t, lifecycle.OperationSucceeded, l.ended(it.create).State)
	require.NoError(t, cmd.Process.Kill())
}

func TestTwoBuildsCarryOnEachOthersOperations(t *testing.T) {
	t.Parallel()
	floor, this := builds(t)
	for _, order := range [][2]build{{floor, this}, {this, floor}} {
		t.Run(fmt.Sprintf("%s first, then %s", order[0].name, order[1].name), func(t *testing.T) {
			l := newLab(t)
			s := l.script("builds")
			w := l.world("builds", s.url)
			known := map[ids.ID]*exec.Cmd{}
			first := []ids.ID{l.workerOf(known, order[0]), l.workerOf(known, order[0])}

			begun := l.fleetOf(w, flight)
			l.until("all are under way", func() bool { return l.sent(s) == flight })
			second := []ids.ID{l.workerOf(known, order[1]), l.workerOf(known, order[1])}
			ends(s, begun[:flight/3])
			both := l.fleetOf(w, flight/3) // while both builds work
			l.until("they are under way too", func() bool { return l.sent(s) == flight+flight/3 })
			if order[0] == floor {
				require.NoError(t, known[first[0]].Process.Signal(syscall.SIGTERM))
				require.NoError(t, known[first[1]].Process.Kill())
			} else { // what only this build knows waits for one of it
				require.NoError(t, known[first[0]].Process.Kill())
			}
			ends(s, begun[flight/3:])
			ends(s, both)
			l.allEnded(t)

			require.NoError(t, known[second[0]].Process.Kill())
			var torn []ids.ID
			for _, it := range begun[flight/2:] {
				torn = append(torn, l.decommission(it, time.Minute))
			}
			l.until("the adapter is asked to tear down", func() bool { return l.sent(s) == flight+flight/3+len(torn) })
			for _, id := range torn {
				s.succeed(string(id), 1)
			}
			l.allEnded(t)
			l.endedAsTold(t, s)
		})
	}
}

// workerOf starts a worker process of a build.
func (l *lab) workerOf(known map[ids.ID]*exec.Cmd, of build) ids.ID {
	l.Helper()
	return l.joined(known, l.spawnOf(of.program, l.pg.AdminDSN()))
}

// fleetOf launches many instances.
func (l *lab) fleetOf(w world, count int) (all []launched) {
	l.Helper()
	for range count {
		all = append(all, l.launch(w, 5*time.Minute))
	}
	return all
}

// sent is how many operations the adapter was sent.
func (l *lab) sent(s *script) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.status)
}

// ends lets the adapter end launches: each fifth fails.
func ends(s *script, all []launched) {
	for n, it := range all {
		if n%5 == 4 {
			s.say(failedStatus(string(it.create)))
			continue
		}
		s.succeed(string(it.create), 1)
	}
}

// allEnded waits until every operation has ended.
func (l *lab) allEnded(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return l.unended() == 0 }, 2*time.Minute, 50*time.Millisecond,
		"every operation ends")
}

// endedAsTold requires that every operation ended once, as the adapter reported, and that no step of any is open.
func (l *lab) endedAsTold(t *testing.T, s *script) {
	t.Helper()
	for _, op := range l.own.Operation.Query().Order(dboperation.ByID()).AllX(t.Context()) {
		want, code := lifecycle.OperationSucceeded, ""
		s.mu.Lock()
		if s.status[string(op.ID)].State == adapter.StateFailed {
			want, code = lifecycle.OperationFailed, "ADAPTER_FAILED"
		}
		s.mu.Unlock()
		require.Equal(t, want, op.State, "%s %s: %s %s", op.Kind, op.ID, op.ErrorCode, op.ErrorMessage)
		require.Equal(t, code, op.ErrorCode)
		require.Equal(t, 1, op.DispatchAttempt)
		s.oneEffect(string(op.ID))
	}
	l.none(`SELECT s.operation_id || ' ' || s.name || ' ' || s.state FROM operation_step s
		JOIN operation o ON o.id = s.operation_id
		WHERE o.ended_at IS NOT NULL AND s.state IN ('PENDING', 'RUNNING', 'UNDOING')`)
	l.none(`SELECT o.id || ' has ' || count(e.id) FROM operation o LEFT
		JOIN app_instance_event e ON e.operation_id = o.id
		AND e.type IN ('apps.operation.succeeded', 'apps.operation.failed', 'apps.operation.canceled') GROUP BY o.id
		HAVING count(e.id) <> 1`)
}
