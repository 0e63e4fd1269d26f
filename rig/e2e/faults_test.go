package e2e_test

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/supervise"
	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// awaitWork waits until the adapter has begun to work on the members.
func awaitWork(t *testing.T, ctx context.Context, c *client.Client, operation string) {
	t.Helper()
	require.Eventually(t, func() bool {
		op, err := gql.GetOperation(ctx, c, operation)
		return err == nil && op.Operation.Percent > 15
	}, time.Minute, 10*time.Millisecond)
}

// kill ends programs as a power cut would and waits until their supervisor has started each again.
func kill(t *testing.T, children ...*supervise.Child) (at time.Time) {
	t.Helper()
	starts := make([]int, len(children))
	for i, child := range children {
		starts[i] = child.Starts()
	}
	at = time.Now()
	for _, child := range children {
		require.NoError(t, child.Signal(syscall.SIGKILL))
	}
	for i, child := range children {
		require.Eventually(t, func() bool { return child.Starts() > starts[i] }, time.Minute, 20*time.Millisecond)
	}
	return at
}

// nodeOf is the lab's node that a member is on.
func nodeOf(t *testing.T, member gql.Member) *stack.Node {
	t.Helper()
	require.NotNil(t, member.Node)
	for _, node := range shared.Nodes {
		if node.Name() == member.Node.Name {
			return node
		}
	}
	t.Fatalf("there is no node %s", member.Node.Name)
	return nil
}

// killInit ends a member's init, as the node's agent has it on record, and with it all that runs in the member. It
// waits until init has ended: the kernel ends it after all else, and a process that writes to a slow disk ends with its
// write. The environment does not identify a member's processes: a job has that of the member where it was submitted.
func killInit(t *testing.T, ctx context.Context, node *stack.Node, member string) {
	t.Helper()
	_, err := node.Exec(ctx, "/bin/sh", "-c", `pid=$(sed -n 's/.*"initPid": *\([0-9]*\).*/\1/p' "$1") && kill -9 "$pid" || exit 1
for try in $(seq 300); do
    grep -q '^State:[[:space:]]*[^ZX]' "/proc/$pid/status" 2> /dev/null || exit 0
    sleep 0.1
done
echo "it has not ended for 30 s:"; cat "/proc/$pid/status"; exit 1`, "sh",
		filepath.Join(node.State, "agent", "members", member, "sandbox.json"))
	require.NoError(t, err)
}

// requireOneCluster requires that a launch came to its end after the fault, with the members and the
// cluster nodes of one launch, and takes the instance down.
func requireOneCluster(t *testing.T, ctx context.Context, c *client.Client, instance, operation string,
	fault time.Time) {
	t.Helper()
	ended := succeeds(t, ctx, c, operation)
	require.Equal(t, 1, ended.DispatchAttempt)
	require.NotNil(t, ended.EndedAt)
	require.True(t, ended.EndedAt.After(fault), "the launch was over before the fault; nothing is shown")
	members := memberIDs(t, ctx, c, instance)
	require.Len(t, members, 2)
	require.Equal(t, 1, clusterNodes(t, ctx, c, instance))
	requireProof(t, decommission(t, ctx, c, instance), members)
	requireCleanNodes(t, ctx)
}

func TestALaunchSurvivesTheServersDeathAndMakesOneCluster(t *testing.T) {
	needsRoot(t)
	ctx, c := bounded(t), automation(t)
	instance, operation := launch(t, ctx, c, "slurm", "slurm-crash", rent(t, ctx, c))
	awaitWork(t, ctx, c, operation)
	at := kill(t, shared.Server)
	require.NoError(t, shared.AwaitReady(ctx))
	requireOneCluster(t, ctx, c, instance, operation, at)
}

func TestALaunchSurvivesTheAdaptersDeathAndMakesOneCluster(t *testing.T) {
	needsRoot(t)
	ctx, c := bounded(t), automation(t)
	instance, operation := launch(t, ctx, c, "slurm", "slurm-adapter", rent(t, ctx, c))
	awaitWork(t, ctx, c, operation)
	requireOneCluster(t, ctx, c, instance, operation, kill(t, shared.Controllers["slurm"]))
}

func TestALaunchSurvivesTheAgentsDeathAndMakesOneCluster(t *testing.T) {
	needsRoot(t)
	ctx, c := bounded(t), automation(t)
	instance, operation := launch(t, ctx, c, "slurm", "slurm-agent", rent(t, ctx, c))
	awaitWork(t, ctx, c, operation)
	var agents []*supervise.Child
	for _, node := range shared.Nodes {
		agents = append(agents, node.Agent)
	}
	requireOneCluster(t, ctx, c, instance, operation, kill(t, agents...))
}

func TestALaunchWaitsForAnAdapterThatIsDown(t *testing.T) {
	ctx, c := bounded(t), automation(t)
	app := stack.Apps()[0]
	require.NoError(t, shared.Controllers[app.Slug].Stop())
	instance, operation := launch(t, ctx, c, app.Slug, "hello-down", rent(t, ctx, c))
	require.Eventually(t, func() bool {
		op, err := gql.GetOperation(ctx, c, operation)
		return err == nil && triedAndFailed(op.Operation.Steps)
	}, time.Minute, 50*time.Millisecond, "the platform does not say that the adapter is not there")
	found, err := gql.GetInstance(ctx, c, instance)
	require.NoError(t, err)
	require.NotEqual(t, gql.InstanceStatusRunning, found.Instance.Status)
	require.NoError(t, shared.StartController(ctx, app))
	require.Equal(t, 1, succeeds(t, ctx, c, operation).DispatchAttempt)
	members := memberIDs(t, ctx, c, instance)
	requireProof(t, decommission(t, ctx, c, instance), members)
}

// triedAndFailed says whether the dispatch has been tried, in vain, and is still wanted.
func triedAndFailed(steps []gql.OperationStep) bool {
	for _, step := range steps {
		if step.Name == "dispatch" && step.Attempt > 1 && step.EndedAt == nil && step.Message != "" {
			return true
		}
	}
	return false
}
