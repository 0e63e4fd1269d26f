package nodenet_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/nodenet"
)

// view is one instance that reaches another, with a member that has a range and an endpoint.
func view() nodenet.View {
	return nodenet.View{
		Pools: []string{"100.96.0.0/16"}, Nodes: []string{"192.0.2.1"},
		Instances: []nodenet.Instance{{
			ID: "ins_1", Reaches: []ids.ID{"ins_2"},
			Members: []nodenet.Member{{
				ID: "mem_1", Address: "100.96.0.1", NodeID: "node_1", NodeAddress: "192.0.2.1",
				Ranges: []nodenet.Range{{Name: "pods", CIDR: "100.96.4.0/24"}},
				Open:   []nodenet.Port{{Protocol: "tcp", Number: 6443}},
			}},
		}},
	}
}

// An agent waits for another version: a change that had the same one would not reach the node's firewall.
func TestTheVersionChangesWithAllThatTheAgentApplies(t *testing.T) {
	t.Parallel()
	seen := map[string]string{view().Versioned().Version: "unchanged"}
	for name, change := range map[string]func(v *nodenet.View, m *nodenet.Member){
		"a pool":           func(v *nodenet.View, _ *nodenet.Member) { v.Pools[0] = "100.97.0.0/16" },
		"a node":           func(v *nodenet.View, _ *nodenet.Member) { v.Nodes = append(v.Nodes, "192.0.2.2") },
		"an instance":      func(v *nodenet.View, _ *nodenet.Member) { v.Instances[0].ID = "ins_3" },
		"no instance":      func(v *nodenet.View, _ *nodenet.Member) { v.Instances = nil },
		"a share":          func(v *nodenet.View, _ *nodenet.Member) { v.Instances[0].Reaches = nil },
		"a member":         func(_ *nodenet.View, m *nodenet.Member) { m.ID = "mem_2" },
		"its address":      func(_ *nodenet.View, m *nodenet.Member) { m.Address = "100.96.0.2" },
		"its node":         func(_ *nodenet.View, m *nodenet.Member) { m.NodeID = "node_2" },
		"its node's place": func(_ *nodenet.View, m *nodenet.Member) { m.NodeAddress = "192.0.2.2" },
		"a range's name":   func(_ *nodenet.View, m *nodenet.Member) { m.Ranges[0].Name = "services" },
		"a range's block":  func(_ *nodenet.View, m *nodenet.Member) { m.Ranges[0].CIDR = "100.96.5.0/24" },
		"a protocol":       func(_ *nodenet.View, m *nodenet.Member) { m.Open[0].Protocol = "udp" },
		"a port":           func(_ *nodenet.View, m *nodenet.Member) { m.Open[0].Number = 6444 },
	} {
		changed := view()
		change(&changed, &changed.Instances[0].Members[0])
		version := changed.Versioned().Version
		require.NotContains(t, seen, version, "%s: the version is that of %q", name, seen[version])
		seen[version] = name
	}
}

func TestTheSameContentHasTheSameVersion(t *testing.T) {
	t.Parallel()
	first := view().Versioned()
	require.Regexp(t, `^[0-9a-f]{24}$`, first.Version,
		"96 bits, which no two views share; an agent names it in each call, where 64 characters are taken")
	require.Equal(t, first, first.Versioned(), "the version is not a part of what it is made of")
	text, err := json.Marshal(view())
	require.NoError(t, err)
	require.NotContains(t, string(text), "version", "what is stored has none")
	var stored nodenet.View
	require.NoError(t, json.Unmarshal(text, &stored))
	require.Equal(t, first, stored.Versioned(), "every process of the platform gives it the same")
}
