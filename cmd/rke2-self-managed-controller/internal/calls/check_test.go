package calls

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestARemovalBelowQuorumIsRefusedWithItsArithmetic(t *testing.T) {
	t.Parallel()
	servers := func(statuses ...string) (list []adapter.Member) {
		for i, status := range statuses {
			list = append(list, adapter.Member{ID: fmt.Sprint(i), ComponentKey: machine.Server, Status: status})
		}
		return list
	}
	for _, c := range []struct {
		members []adapter.Member
		targets []string
		refused string
	}{
		{servers("active", "active", "active"), []string{"0"}, ""},
		{servers("active", "active", "active"), []string{"0", "1"}, ""},
		{servers("active", "active", "failed"), []string{"2"}, ""},
		{servers("active", "active", "failed"), []string{"1"},
			"3 - 1 = 2 servers would be left, of which 1 serve, and etcd needs 2"},
		{servers("active", "failed", "failed"), []string{"1"}, ""},
		{servers("active", "failed", "failed"), []string{"0"}, "1 of 3 servers serve, and etcd needs 2"},
		{servers("active"), []string{"0"}, "the last one leaves only by a decommission"},
	} {
		err := quorate(c.members, c.targets)
		if c.refused == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.refused)
	}
	require.ErrorContains(t, odd(adapter.Dispatch{Instance: adapter.Instance{
		Components: []adapter.ComponentCount{{Key: machine.Server, Count: 2}},
	}}), "choose 1, 3 or 5")
}

func TestSlicesOfSeveralAllocationsAreNoCluster(t *testing.T) {
	t.Parallel()
	on := func(nodes ...adapter.Node) adapter.Dispatch {
		var d adapter.Dispatch
		for _, node := range nodes {
			d.Members = append(d.Members, adapter.Member{Node: node})
		}
		return d
	}
	whole, other := adapter.Node{Shape: "baremetal", AllocationID: "a"}, adapter.Node{Shape: "baremetal",
		AllocationID: "b"}
	part, apartOf := adapter.Node{Shape: "gpu_slice", AllocationID: "a"}, adapter.Node{Shape: "gpu_slice",
		AllocationID: "b"}
	require.NoError(t, apart(on(whole, other)))
	require.NoError(t, apart(on(part, part)))
	require.ErrorContains(t, apart(on(part, apartOf)), "keep the cluster in one allocation")
	require.ErrorContains(t, apart(on(whole, apartOf)), "keep the cluster in one allocation")
}
