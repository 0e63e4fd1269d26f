package task_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// patience bounds what a test waits for.
const patience = 60 * time.Second

// follower is the agent's end of a stream.
type follower struct {
	t     *testing.T
	tasks <-chan *db.NodeTask
	ended chan error
	stop  context.CancelFunc
}

func (b *bench) follow(ctx context.Context) *follower {
	b.t.Helper()
	ctx, stop := context.WithCancel(ctx)
	f := &follower{t: b.t, ended: make(chan error, 1), stop: stop}
	var err error
	f.tasks, err = b.Follow(ctx, func(err error) { f.ended <- err })
	require.NoError(b.t, err)
	b.t.Cleanup(stop)
	return f
}

// next is the next task that comes.
func (f *follower) next() *db.NodeTask {
	f.t.Helper()
	select {
	case task, ok := <-f.tasks:
		require.True(f.t, ok, "the stream has ended")
		return task
	case <-time.After(patience):
		f.t.Fatal("no task came")
		return nil
	}
}

// closed waits for the stream's end.
func (f *follower) closed() {
	f.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case _, ok := <-f.tasks:
			if !ok {
				return
			}
		case <-deadline:
			f.t.Fatal("the stream has not ended")
		}
	}
}

func TestAStreamBeginsWithWhatIsOpenAndGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	done := b.ask("done")
	_, err := b.report(done.ID, lifecycle.TaskSucceeded)
	require.NoError(t, err)
	var open []ids.ID
	for i := range 20 { // more than one read
		open = append(open, b.ask(fmt.Sprint("k", i)).ID)
	}
	node, _ := b.Node(1)
	b.other(b.project, node)

	f := b.follow(b.agent)
	for _, id := range open {
		task := f.next()
		require.Equal(t, id, task.ID)
		require.JSONEq(t, `{"command":["true"]}`, string(task.Spec))
	}
	fresh := b.ask("fresh")
	require.Equal(t, fresh.ID, f.next().ID)
	_, err = b.Cancel(b.adapter, open[3])
	require.NoError(t, err)
	canceled := f.next()
	require.Equal(t, open[3], canceled.ID)
	require.True(t, canceled.CancelRequested)
	b.SQL(`UPDATE node_task SET fence = 2 WHERE id = $1`, open[5])
	raised := f.next() // found by the stream's own look
	require.Equal(t, open[5], raised.ID)
	require.Equal(t, 2, raised.Fence)
	f.stop()
	f.closed()
	require.Empty(t, f.ended, "an end that was asked for is no error")
}

func TestEachNodeSeesItsOwnTasksOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	node, secret := b.Node(1)
	sibling, its := b.other(b.project, node)
	b.ask("k")
	in := b.input("k")
	in.MemberID = its.ID
	operation := b.Operation(sibling, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	theirs, err := b.Run(b.With(b.OperationToken(operation, keysOfAdapters...)), in)
	require.NoError(t, err)
	f := b.follow(b.With(secret))
	require.Equal(t, theirs.ID, f.next().ID)
	b.ask("k2")
	_, err = b.Cancel(b.With(b.OperationToken(operation, keysOfAdapters...)), theirs.ID)
	require.NoError(t, err)
	require.Equal(t, theirs.ID, f.next().ID, "what the other node gets does not come here")
}

func TestARevokedCredentialEndsItsStreamWithAnError(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.follow(b.agent)
	b.SQL(`UPDATE node_credential SET revoked_at = now() WHERE node_id = $1`, b.node.ID)
	began := time.Now()
	f.closed()
	require.Less(t, time.Since(began), 8*time.Second)
	require.True(t, fault.Is(<-f.ended, fault.Unauthenticated))
	_, err := b.Follow(b.agent, func(error) {})
	require.True(t, fault.Is(err, fault.Unauthenticated))
}

func TestOnlyNodesFollow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, ctx := range []context.Context{b.adapter, b.As(b.Operator())} {
		_, err := b.Follow(ctx, func(error) {})
		require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
	}
}
