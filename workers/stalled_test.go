package workers_test

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	dboperation "github.com/gpuaas/app-platform/ent/generated/db/operation"
	"github.com/gpuaas/app-platform/internal/pgtest"
)

// troubles are what keeps a worker process from its work without ending it. Whoever lost its connections alone gets new
// ones and may go on by itself; from the others everything is taken over.
var troubles = []struct {
	name  string
	begin func(t *testing.T, victim *exec.Cmd, proxy *pgtest.Proxy)
	end   func(t *testing.T, victim *exec.Cmd, proxy *pgtest.Proxy)
	// replaced reports whether other workers take over while the stall lasts.
	replaced bool
}{
	{
		name: "it is halted", replaced: true,
		begin: func(t *testing.T, victim *exec.Cmd, _ *pgtest.Proxy) {
			require.NoError(t, victim.Process.Signal(syscall.SIGSTOP))
		},
		end: func(t *testing.T, victim *exec.Cmd, _ *pgtest.Proxy) {
			require.NoError(t, victim.Process.Signal(syscall.SIGCONT))
		},
	},
	{
		name: "its network loses every packet", replaced: true,
		begin: func(_ *testing.T, _ *exec.Cmd, proxy *pgtest.Proxy) { proxy.SwallowAll() },
		end:   func(_ *testing.T, _ *exec.Cmd, proxy *pgtest.Proxy) { proxy.Cut() },
	},
	{
		name:  "its connections lose every packet",
		begin: func(_ *testing.T, _ *exec.Cmd, proxy *pgtest.Proxy) { proxy.Swallow() },
		end:   func(*testing.T, *exec.Cmd, *pgtest.Proxy) {},
	},
}

func TestWhatAProcessHeldThatHangsGoesOnWithinFifteenSeconds(t *testing.T) {
	for _, trouble := range troubles {
		t.Run(trouble.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			s := l.script("hanging")
			g := s.gate()
			proxy := pgtest.NewProxy(t, l.pg.AdminDSN())
			workers := l.processes(2)
			victim := l.another(workers, proxy.DSN())
			all, holders := l.crowded(s, g)
			require.NotZero(t, holders[victim], "it holds a part of the work")

			trouble.begin(t, workers[victim], proxy)
			begun := time.Now()
			close(g.open)
			if trouble.replaced {
				l.until("what it held is taken over", func() bool { return l.heldBy(victim) == 0 })
				require.Less(t, time.Since(begun), takeOver)
			}
			require.Eventually(t, func() bool { return l.unended() == 0 }, 2*patience, 50*time.Millisecond,
				"everything ends while it lasts")
			trouble.end(t, workers[victim], proxy)
			l.endedOnce(s, all)
		})
	}
}

// heldBy is how many operations a worker holds.
func (l *lab) heldBy(worker ids.ID) int {
	return l.own.Operation.Query().Where(dboperation.ClaimedBy(worker)).CountX(l.Context())
}

// unended is how many operations have not ended.
func (l *lab) unended() int {
	return l.own.Operation.Query().Where(dboperation.EndedAtIsNil()).CountX(l.Context())
}
