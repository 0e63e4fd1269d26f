package share_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodenet"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/node"
	"github.com/gpuaas/app-platform/service/share"
)

// waits has a node's agent wait for another network than the one that it knows, and returns once it does.
func (b *bundle) waits(agent context.Context, known ids.ID) (changed <-chan *nodenet.View) {
	b.t.Helper()
	nodes := &node.Service{DB: b.DB, Hub: b.Hub}
	view, err := nodes.Network(agent, "", 0)
	require.NoError(b.t, err)
	out := make(chan *nodenet.View, 1)
	before := b.Hub.Waiting(event.InstanceTopic(known))
	go func() {
		defer close(out)
		if next, err := nodes.Network(agent, view.Version, 20); err == nil && next.Version != view.Version {
			out <- next
		}
	}()
	require.Eventually(b.t, func() bool { return b.Hub.Waiting(event.InstanceTopic(known)) > before }, soon,
		time.Millisecond)
	return out
}

// The agents of both ends learn within moments that a share was accepted or has ended: nothing else does so for 20 s.
func TestAShareWakesTheNodesWhoseNetworkItChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at, secret := b.Node(4)
	_, stored := b.Launchable(b.guest, "apps")
	guest := b.Instance(b.guest, stored, lifecycle.InstanceRunning, b.Allocation(b.guest, at))
	agent := b.With(secret)
	reaches := func(from <-chan *nodenet.View) []ids.ID {
		began := time.Now()
		view := <-from
		require.NotNil(t, view, "it was not woken")
		require.Less(t, time.Since(began), 10*time.Second)
		for _, each := range view.Instances {
			if each.ID == guest.ID {
				return each.Reaches
			}
		}
		return nil
	}
	offer := b.offered()
	changed := b.waits(agent, guest.ID)
	_, err := b.service.Accept(b.other, share.Input{ShareID: offer.ID, Reason: "we need it"})
	require.NoError(t, err)
	require.Equal(t, []ids.ID{b.made.ID}, reaches(changed))

	changed = b.waits(agent, b.made.ID)
	_, err = b.service.Withdraw(b.owner, share.Input{ShareID: offer.ID, Reason: "no longer"})
	require.NoError(t, err)
	require.Empty(t, reaches(changed))
}
