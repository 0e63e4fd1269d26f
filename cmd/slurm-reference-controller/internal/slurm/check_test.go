package slurm

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestImpossibleClustersAreRefusedBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	whole := func() adapter.Dispatch {
		d := adapter.Dispatch{Kind: adapter.InstanceCreate, Members: []adapter.Member{
			onHost("mem_c1", layout.ComponentController, 0), onHost("mem_w1", layout.ComponentWorker, 0),
		}}
		return d
	}
	require.NoError(t, check(context.Background(), whole()))
	cases := map[string]struct {
		change func(*adapter.Dispatch)
		code   string
	}{
		"no worker":      {func(d *adapter.Dispatch) { d.Members = d.Members[:1] }, "TOPOLOGY_INVALID"},
		"no controller":  {func(d *adapter.Dispatch) { d.Members = d.Members[1:] }, "TOPOLOGY_INVALID"},
		"foreign member": {func(d *adapter.Dispatch) { d.Members[1].ComponentKey = "queen" }, "UNKNOWN_COMPONENT"},
		"too many": {
			func(d *adapter.Dispatch) { d.Members = append(d.Members, manyWorkers()...) }, "TOO_MANY_WORKERS",
		},
		"no sealing key": {func(d *adapter.Dispatch) { d.Members[0].Node.SealingKey = "" }, "NODE_INCOMPLETE"},
		"evil address": {
			func(d *adapter.Dispatch) { d.Members[1].Node.Address = "10.0.0.1\nInclude=/x" }, "NODE_INCOMPLETE",
		},
		"no node address": {func(d *adapter.Dispatch) { d.Members[0].Node.Address = "" }, "NODE_INCOMPLETE"},
	}
	for name, c := range cases {
		d := whole()
		c.change(&d)
		var refused adapter.ErrorBody
		require.ErrorAs(t, check(context.Background(), d), &refused, name)
		require.Equal(t, c.code, refused.Code, name)
	}
	d := whole()
	d.Kind, d.Members = adapter.InstanceDecommission, d.Members[:1]
	require.NoError(t, check(context.Background(), d), "what never became whole can still be torn down")
}

func manyWorkers() (list []adapter.Member) {
	for i := range layout.MaxWorkers {
		list = append(list, onHost(fmt.Sprintf("mem_x%d", i), layout.ComponentWorker, i+1))
	}
	return list
}

// onHost returns a member whose node has all that a cluster needs of it.
func onHost(id, component string, index int) adapter.Member {
	return adapter.Member{
		ID: id, ComponentKey: component, Index: index,
		Node: adapter.Node{ID: "nod_1", Name: "n", Address: "10.77.0.1", SealingKey: "k", CPUs: 1, MemoryMiB: 1},
	}
}

func TestManifestIsValidOncePublished(t *testing.T) {
	t.Parallel()
	compiled, err := jsonschema.NewCompiler().Compile("../../../../domain/manifest/manifest.schema.json")
	require.NoError(t, err)
	digest := "sha256:" + strings.Repeat("a", 64)
	text := strings.Replace(
		string(readManifest(t)),
		`"ref": ""`,
		`"ref": "registry.example/apps/controller@`+digest+`"`,
		1,
	)
	document, err := jsonschema.UnmarshalJSON(
		strings.NewReader(strings.Replace(text, `"digest": ""`, `"digest": "`+digest+`"`, 1)),
	)
	require.NoError(t, err)
	require.NoError(t, compiled.Validate(document))
}

func TestAControllerMovesOnlyWithItsStateOnAVolume(t *testing.T) {
	t.Parallel()
	d := adapter.Dispatch{Kind: adapter.MemberReplace, Targets: []string{"mem_c1", "mem_c2"}, Members: []adapter.Member{
		onHost("mem_c1", layout.ComponentController, 0), onHost("mem_c2", layout.ComponentController, 1),
		onHost("mem_w1", layout.ComponentWorker, 0), onHost("mem_l1", layout.ComponentLogin, 0),
	}}
	var refused adapter.ErrorBody
	require.ErrorAs(t, check(context.Background(), d), &refused)
	require.Equal(t, "CONTROLLER_IS_FIXED", refused.Code)
	require.Equal(t, "targets[0]", refused.Path)
	for i := range d.Members[:2] {
		d.Members[i].Volumes = []adapter.MemberVolume{{Slot: layout.SlotState, Path: layout.StateDir}}
	}
	require.NoError(t, check(context.Background(), d))
	d.Kind = adapter.MemberRemove
	require.ErrorAs(t, check(context.Background(), d), &refused)
	require.Equal(t, "TOPOLOGY_INVALID", refused.Code, "two controllers are none but while one replaces the other")
	d.Kind, d.Targets, d.Members = adapter.MemberDrain, []string{"mem_c1"}, append(d.Members[:1:1], d.Members[2:]...)
	require.ErrorAs(t, check(context.Background(), d), &refused)
	require.Equal(t, "CONTROLLER_IS_FIXED", refused.Code)
	d.Targets = []string{"mem_l1"}
	require.NoError(t, check(context.Background(), d), "a login")
}
