package calls

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestTwoMembersOnOneNodeAreRefused(t *testing.T) {
	t.Parallel()
	on := func(id, shape string) adapter.Member {
		return adapter.Member{Node: adapter.Node{ID: id, Name: "name-of-" + id, Shape: shape}}
	}
	require.NoError(t, alone(adapter.Dispatch{Members: []adapter.Member{on("nod_1", "baremetal"), on("nod_2", "baremetal")}}))
	require.NoError(t, alone(adapter.Dispatch{Members: []adapter.Member{on("nod_1", slice), on("nod_1", slice)}}),
		"a slice is a machine of its own")
	err := alone(adapter.Dispatch{Members: []adapter.Member{on("nod_1", "baremetal"), on("nod_2", "baremetal"),
		on("nod_1", "baremetal")}})
	require.ErrorContains(t, err, "two members are on the node name-of-nod_1")
}
