package watch_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/watch"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const (
	first  = "mem_0000000000000000000watch0"
	second = "mem_0000000000000000000watch1"
	most   = 10
)

func TestMain(m *testing.M) {
	memberinit.Dispatch(os.Args)
	os.Exit(m.Run())
}

// ground is a node with members that are plain processes.
type ground struct {
	*testing.T
	dir     string
	manager *sandbox.Manager
	now     time.Time
}

func newGround(t *testing.T) *ground {
	t.Helper()
	g := &ground{T: t, dir: t.TempDir(), now: time.Now()}
	var err error
	g.manager, err = sandbox.NewManager(t.Context(), sandbox.Options{StateDir: g.dir, ForceProcess: true,
		Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, member := range []string{first, second} {
			_, err := g.manager.Teardown(context.Background(), member)
			require.NoError(t, err)
		}
	})
	return g
}

func (g *ground) start(member string) *sandbox.Client {
	g.Helper()
	client, err := g.manager.Ensure(g.Context(), sandbox.Member{ID: member, InstanceID: "ins_1"})
	require.NoError(g, err)
	return client
}

func (g *ground) watcher() *watch.Watcher {
	return watch.New(g.dir, g.manager, func() time.Time { return g.now })
}

// kill ends a member's init and waits until it has ended.
func (g *ground) kill(member string) {
	g.Helper()
	for _, one := range roster.List(g.dir + "/members") {
		if one.MemberID == member {
			require.NoError(g, unix.Kill(one.InitPID, unix.SIGKILL))
			require.Eventually(g, func() bool { return !one.Alive() }, 10*time.Second, 5*time.Millisecond)
		}
	}
}

func TestAMemberWhoseInitDiesIsFoundForAsLongAsItIsGone(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.start(first)
	g.start(second)
	w := g.watcher()
	lost, _ := w.Look(t.Context(), most)
	require.Empty(t, lost)
	g.kill(first)
	for range 2 {
		lost, _ = w.Look(t.Context(), most)
		require.Equal(t, []watch.Finding{{MemberID: first, Failure: watch.InitGone}}, lost)
	}
	lost, _ = g.watcher().Look(t.Context(), most)
	require.Equal(t, watch.InitGone, lost[0].Failure, "the node has not restarted: another member lives")
	g.start(first)
	lost, _ = w.Look(t.Context(), most)
	require.Empty(t, lost)
}

func TestMembersThatAreAllGoneWhenTheAgentStartsWereEndedByARestartOfTheNode(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.start(first)
	g.start(second)
	g.kill(first)
	g.kill(second)
	w := g.watcher()
	lost, _ := w.Look(t.Context(), most)
	require.Equal(t, []watch.Finding{{MemberID: first, Failure: watch.NodeRestarted},
		{MemberID: second, Failure: watch.NodeRestarted}}, lost)
	lost, _ = w.Look(t.Context(), 1)
	require.Len(t, lost, 1)
	g.start(first)
	g.kill(first)
	lost, _ = w.Look(t.Context(), most)
	require.Equal(t, watch.InitGone, lost[0].Failure, "this start of it came after the node's")
}

func TestRestartsAreFoldedAndABudgetThatIsSpentIsFound(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	client := g.start(first)
	w := g.watcher()
	_, err := client.StartProcess(t.Context(), wire.ProcessSpec{Name: "dies", Command: []string{"sh", "-c", "exit 3"},
		Policy: memberinit.PolicyOnFailure, MaxRestarts: 3, BackoffMillis: 10})
	require.NoError(t, err)
	var lost []watch.Finding
	var restarts []watch.Restarts
	require.Eventually(t, func() bool {
		lost, restarts = w.Look(t.Context(), most)
		return len(lost) > 0
	}, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, first, lost[0].MemberID)
	require.Equal(t, watch.RestartsSpent, lost[0].Failure)
	require.Contains(t, lost[0].Message, "process dies failed again after 3 restarts")
	require.Len(t, restarts, 1)
	require.Equal(t, 3, restarts[0].Restarts)
	require.Equal(t, "dies", restarts[0].Process)
	require.NotEmpty(t, restarts[0].Since)
	w.Reported(restarts)
	_, restarts = w.Look(t.Context(), most)
	require.Empty(t, restarts)
}

func TestFurtherRestartsOfAProcessAreReportedOnceAMinute(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	client := g.start(first)
	w := g.watcher()
	_, err := client.StartProcess(t.Context(), wire.ProcessSpec{Name: "dies", Command: []string{"sh", "-c", "exit 3"},
		Policy: memberinit.PolicyAlways, BackoffMillis: 10})
	require.NoError(t, err)
	var restarts []watch.Restarts
	require.Eventually(t, func() bool {
		_, restarts = w.Look(t.Context(), most)
		return len(restarts) > 0
	}, 20*time.Second, 10*time.Millisecond, "the first at once")
	w.Reported(restarts)
	before := restarts[0].Restarts
	require.Eventually(t, func() bool {
		list, err := client.Processes(t.Context())
		require.NoError(t, err)
		return list[0].Restarts > before
	}, 20*time.Second, 10*time.Millisecond)
	_, restarts = w.Look(t.Context(), most)
	require.Empty(t, restarts, "further ones are folded")
	g.now = g.now.Add(time.Minute)
	lost, restarts := w.Look(t.Context(), most)
	require.Empty(t, lost, "it has no bound")
	require.Len(t, restarts, 1)
	require.Greater(t, restarts[0].Restarts, before)
}
