package calls

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestTwoMembersOnOneNodeAreRefused(t *testing.T) {
	t.Parallel()
	on := func(id, shape string) adapter.Member {
		return adapter.Member{Node: adapter.Node{ID: id, Name: "name-of-" + id, Shape: shape}}
	}
	require.NoError(t, alone(adapter.Dispatch{Members: []adapter.Member{on("nod_1", "baremetal"),
		on("nod_2", "baremetal")}}))
	require.NoError(t, alone(adapter.Dispatch{Members: []adapter.Member{on("nod_1", slice), on("nod_1", slice)}}),
		"a slice is a machine of its own")
	err := alone(adapter.Dispatch{Members: []adapter.Member{on("nod_1", "baremetal"), on("nod_2", "baremetal"),
		on("nod_1", "baremetal")}})
	require.ErrorContains(t, err, "two members are on the node name-of-nod_1")
}

func TestAReplacementNeedsANodeOfItsOwn(t *testing.T) {
	t.Parallel()
	replaced := func(node string) adapter.Dispatch {
		at := func(id, node string) adapter.Member {
			return adapter.Member{ID: id, ComponentKey: machine.Server,
				Node: adapter.Node{ID: node, Name: "name-of-" + node, Shape: "baremetal"}}
		}
		return adapter.Dispatch{OperationID: "op_1", Kind: adapter.MemberReplace, Targets: []string{"mem_1"},
			Members:  []adapter.Member{at("mem_1", "nod_1"), at("mem_2", node)},
			Change:   json.RawMessage(`{"replacementId":"mem_2"}`),
			Instance: adapter.Instance{Components: []adapter.ComponentCount{{Key: machine.Server, Count: 1}}}}
	}
	components := []adapter.Component{{Key: machine.Server, Min: 1, Max: 5}}
	require.NoError(t, Check(components, replaced("nod_2")))
	err := Check(components, replaced("nod_1"))
	require.ErrorContains(t, err, "two members are on the node name-of-nod_1")
	require.ErrorContains(t, err, "recover it, do not replace it")
}
