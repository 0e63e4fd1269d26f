package isolation_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/isolation"
)

// offering is a node with both profiles.
func offering(classes ...isolation.Class) *isolation.Walls {
	return &isolation.Walls{Classes: classes, Profiles: []isolation.Profile{isolation.Service, isolation.Nesting}}
}

func TestAMemberGetsTheWeakestClassThatWillDo(t *testing.T) {
	t.Parallel()
	all := offering(isolation.WholeNode, isolation.VM, isolation.Container)
	noContainers := func(class isolation.Class) bool { return class != isolation.Container }
	for name, one := range map[string]struct {
		node      *isolation.Walls
		want      isolation.Want
		exclusive bool
		class     isolation.Class
		reasons   []fault.Code
	}{
		"nothing demanded":         {all, isolation.Want{}, false, isolation.Container, nil},
		"demanded and offered":     {all, isolation.Want{Class: isolation.VM}, false, isolation.VM, nil},
		"a stronger one will do":   {all, isolation.Want{Class: isolation.Sandbox}, false, isolation.VM, nil},
		"policy takes the weakest": {all, isolation.Want{Allowed: noContainers}, false, isolation.VM, nil},
		"a slice is no whole node": {offering(isolation.WholeNode), isolation.Want{}, false, "",
			[]fault.Code{fault.ClassUnavailable}},
		"a whole node is": {offering(isolation.WholeNode), isolation.Want{Class: isolation.VM}, true,
			isolation.WholeNode, nil},
		"not offered": {offering(isolation.Container), isolation.Want{Class: isolation.VM}, true, "",
			[]fault.Code{fault.ClassUnavailable}},
		"no runtime":     {offering(), isolation.Want{}, true, "", []fault.Code{fault.RuntimeMissing}},
		"an older agent": {nil, isolation.Want{Profile: isolation.Nesting}, false, "", nil},
		"an older agent, VM demanded": {nil, isolation.Want{Class: isolation.VM}, true, "",
			[]fault.Code{fault.ClassUnavailable}},
		"an older agent, by policy": {nil, isolation.Want{Allowed: noContainers}, false, "",
			[]fault.Code{fault.ClassUnavailable}},
	} {
		if one.want.Profile == "" {
			one.want.Profile = isolation.Service
		}
		class, reasons := one.node.Grant(one.want, one.exclusive, "allocations.0")
		require.Equal(t, one.class, class, name)
		require.Equal(t, one.reasons, codes(reasons), name)
		for _, reason := range reasons {
			require.Equal(t, "allocations.0", reason.Path, name)
		}
	}
}

func TestAProfileThatTheNodeLacksIsAReason(t *testing.T) {
	t.Parallel()
	node := offering(isolation.Container)
	node.Profiles = []isolation.Profile{isolation.Service}
	_, reasons := node.Grant(isolation.Want{Profile: isolation.Nesting, Class: isolation.VM}, false, "a")
	require.Equal(t, []fault.Code{fault.ProfileUnavailable, fault.ClassUnavailable}, codes(reasons))
	require.Equal(t, "the node does not offer the profile NESTING; it offers CONTAINER, SERVICE: request an "+
		"allocation that demands it", reasons[0].Message)
}

func TestTheClassesThatWillDoAreNamed(t *testing.T) {
	t.Parallel()
	nothing := func(isolation.Class) bool { return false }
	for name, one := range map[string]struct {
		want      isolation.Want
		exclusive bool
		text      string
	}{
		"one":             {isolation.Want{Class: isolation.VM}, false, "VM"},
		"weakest first":   {isolation.Want{Class: isolation.Sandbox}, true, "SANDBOX or VM or WHOLE_NODE"},
		"a slice":         {isolation.Want{Class: isolation.WholeNode}, false, ""},
		"policy has none": {isolation.Want{Allowed: nothing}, true, ""},
	} {
		text := "the isolation class " + one.text
		if one.text == "" {
			text = "an isolation class that is both demanded and allowed"
		}
		require.Equal(t, text, one.want.Text(one.exclusive), name)
		one.want.Profile = isolation.Service
		_, reasons := offering(isolation.Container).Grant(one.want, one.exclusive, "a")
		require.Equal(t, "the node does not offer "+text+"; it offers CONTAINER, SERVICE, NESTING: request an "+
			"allocation that demands it", reasons[0].Message, name)
		_, reasons = (*isolation.Walls)(nil).Grant(one.want, one.exclusive, "a")
		require.Equal(t, "the node's agent does not report isolation classes, and "+text+" is demanded: upgrade it",
			reasons[0].Message, name)
	}
}

func TestANodeSaysWhyItStartsNoMember(t *testing.T) {
	t.Parallel()
	node := offering()
	require.Equal(t, "it offers no isolation class", node.Startless())
	node.Gaps = []isolation.Gap{{Wall: isolation.WallRuntime}}
	require.Equal(t, "it offers no isolation class", node.Startless(), "empty would say that it can start members")
	node.Gaps = []isolation.Gap{{Wall: isolation.WallCPU, Reason: "x"},
		{Wall: isolation.WallRuntime, Reason: "crun is not in PATH"}}
	require.Equal(t, "crun is not in PATH", node.Startless())
	_, reasons := node.Grant(isolation.Want{Profile: isolation.Service}, false, "a")
	require.Contains(t, reasons[0].Message, "crun is not in PATH")
	require.Empty(t, offering(isolation.VM).Startless())
	require.Empty(t, (*isolation.Walls)(nil).Startless())
}

func TestClassesAreOrdered(t *testing.T) {
	t.Parallel()
	require.Equal(t, []isolation.Class{isolation.VM, isolation.WholeNode}, isolation.VM.Least())
	require.Len(t, isolation.Class("").Least(), 4)
	require.Equal(t, isolation.VM, isolation.Stronger(isolation.VM, isolation.Sandbox))
	require.Equal(t, isolation.VM, isolation.Stronger("", isolation.VM))
	require.False(t, isolation.Want{}.Demanding())
	require.True(t, isolation.Want{Class: isolation.Sandbox}.Demanding())
}

func TestASliceHasTheShareOfItsGPUs(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct{ cpus, memory, nodeGPUs, gpus, millis, mib int }{
		"half":             {64, 1000, 8, 4, 32_000, 500},
		"rounded down":     {7, 1000, 3, 1, 2_333, 333},
		"all":              {64, 1000, 8, 8, 64_000, 1000},
		"never more":       {64, 1000, 2, 3, 64_000, 1000},
		"a node without":   {4, 1000, 0, 1, 4_000, 1000},
		"none of its GPUs": {64, 1000, 8, 0, 8_000, 125},
		"never nothing":    {1, 100, 64, 1, 100, 64},
	} {
		millis, mib := isolation.Share(one.cpus, one.memory, one.nodeGPUs, one.gpus)
		require.Equal(t, []int{one.millis, one.mib}, []int{millis, mib}, name)
	}
}

func TestADeviceWithoutIdentityIsNotReported(t *testing.T) {
	t.Parallel()
	require.False(t, isolation.Device{UUID: "unreported-3"}.Reported())
	require.True(t, isolation.Device{UUID: "GPU-1"}.Reported())
	require.True(t, isolation.Device{UUID: "u"}.Reported())
}

func codes(reasons []fault.Reason) (list []fault.Code) {
	for _, reason := range reasons {
		list = append(list, reason.Code)
	}
	return slices.Clip(list)
}
