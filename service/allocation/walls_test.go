package allocation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/allocation"
)

// uuids are the devices that an allocation holds.
func uuids(row *db.Allocation) (list []string) {
	for _, device := range row.Devices {
		list = append(list, device.UUID)
	}
	return list
}

// stored is an allocation as it is now.
func (b *bench) stored(row *db.Allocation) *db.Allocation {
	b.t.Helper()
	found, err := b.Ent.Allocation.Get(b.t.Context(), row.ID)
	require.NoError(b.t, err)
	return found
}

func TestSlicesOfANodeHoldDifferentDevicesAndTheirShare(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	node, _ := b.Node(4)
	b.SQL(`UPDATE compute_node SET cpus = 8, memory_mib = 1000, devices = (SELECT jsonb_agg(jsonb_build_object('uuid',
		'GPU-' || i, 'index', i, 'minor', i,
		'path', '/dev/nvidia' || i, 'simulated', true)) FROM generate_series(0, 3) i) WHERE id = $1`, node.ID)
	first := b.got(b.slice("a", 1, 1))[0]
	second := b.got(b.slice("b", 1, 2))[0]
	require.Equal(t, []string{"GPU-0"}, uuids(first))
	require.Equal(t, []string{"GPU-1", "GPU-2"}, uuids(second))
	require.True(t, second.Devices[0].Simulated)
	require.Equal(t, "/dev/nvidia1", second.Devices[0].Path)
	require.Equal(t, []int{2000, 250, 4000, 500}, []int{*first.CPUMillis, *first.MemoryMib, *second.CPUMillis,
		*second.MemoryMib})
	_, err := b.Request(b.admin, b.slice("c", 1, 2))
	platformtest.Refused(t, err, fault.CapacityUnavailable, "")

	_, err = b.Admin.Exec(t.Context(), `UPDATE allocation SET devices = $2 WHERE id = $1`, first.ID, second.Devices[:1])
	require.ErrorContains(t, err, "device_hold_pkey", "the database itself lets no two hold the same device")
	_, err = b.Admin.Exec(t.Context(), `INSERT INTO allocation (id, tenant_id, project_id, name, shape, gpu_count,
		status,
		node_id, devices, created_at)
		SELECT 'alc_x', tenant_id, project_id, 'x', shape, gpu_count, status, node_id, devices, now() FROM allocation
		WHERE id = $1`, second.ID)
	require.ErrorContains(t, err, "device_hold_pkey")

	b.SQL(`UPDATE allocation SET status = 'RELEASING' WHERE id = $1`, first.ID)
	b.SQL(`UPDATE allocation SET status = 'RELEASED', released_at = now() WHERE id = $1`, first.ID)
	require.Equal(t, []string{"GPU-0", "GPU-3"}, uuids(b.got(b.slice("d", 1, 2))[0]), "what was released is free")
	require.Equal(t, []string{"GPU-0"}, uuids(b.stored(first)), "and stays on record")
}

func TestDevicesAreNamedWhenTheirAgentReportsThem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	node, _ := b.Node(2)
	whole := b.got(b.whole("a", 1))[0]
	require.Equal(t, []string{"unreported-0", "unreported-1"}, uuids(whole))
	require.Nil(t, whole.MemoryMib, "a whole node has no bound")
	report := func(document string) *db.Allocation {
		b.SQL(`UPDATE compute_node SET devices = $2 WHERE id = $1`, node.ID, document)
		return b.stored(whole)
	}
	named := report(`[{"uuid": "GPU-b", "index": 1, "minor": 7}, {"uuid": "GPU-a", "index": 0, "minor": 4}]`)
	require.Equal(t, []isolation.Device{{UUID: "GPU-a", Minor: 4}, {UUID: "GPU-b", Index: 1, Minor: 7}}, named.Devices)
	moved := report(`[{"uuid": "GPU-b", "index": 0, "minor": 0}, {"uuid": "GPU-c", "index": 1, "minor": 1}]`)
	require.Equal(t, []isolation.Device{{UUID: "GPU-a", Minor: 4}, {UUID: "GPU-b"}}, moved.Devices,
		"a device that is gone is still the allocation's, and one that moved has its new place")
	require.Equal(t, 2, b.Count("device_hold", ""))
}

func TestOnlyNodesThatOfferTheClassArePicked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	plain, _ := b.Node(4)
	b.SQL(
		`UPDATE compute_node SET walls = '{"classes": ["CONTAINER", "WHOLE_NODE"], "profiles": ["SERVICE"], "gaps": []}'`)
	demanding := func(key string, class isolation.Class, profile isolation.Profile) allocation.RequestInput {
		in := b.slice(key, 1, 1)
		in.IsolationClass, in.MemberProfile = class, profile
		return in
	}
	for _, in := range []allocation.RequestInput{demanding("a", isolation.VM, ""),
		demanding("b", isolation.WholeNode, ""), demanding("c", "", isolation.Nesting)} {
		_, err := b.Request(b.admin, in)
		platformtest.Refused(t, err, fault.ClassUnavailable, "input.isolationClass")
	}
	require.Zero(t, b.Count("allocation", "")+b.Count("device_hold", "")+b.Count("idempotency", ""))
	strong, _ := b.Node(1)
	b.SQL(`UPDATE compute_node SET walls = '{"classes": ["VM", "WHOLE_NODE"], "profiles": ["NESTING"], "gaps": []}'
		WHERE id = $1`, strong.ID)
	got := b.got(demanding("d", isolation.Sandbox, isolation.Nesting))[0]
	require.Equal(t, strong.ID, *got.NodeID, "a stronger class will do")
	require.Equal(t, isolation.Sandbox, *got.IsolationClass)
	_, err := b.Request(b.admin, demanding("e", isolation.VM, ""))
	platformtest.Refused(t, err, fault.CapacityUnavailable, "")

	b.Policy(b.project, `{"isolationClasses": {"deny": ["CONTAINER"]}}`)
	_, err = b.Request(b.admin, b.slice("f", 1, 1))
	platformtest.Refused(t, err, fault.CapacityUnavailable, "")
	require.Equal(t, plain.ID, *b.got(b.whole("g", 1))[0].NodeID, "a whole node is a stronger class")
}

func TestANodeWithoutARuntimeGetsNoAllocation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Node(4)
	b.SQL(
		`UPDATE compute_node SET walls = '{"classes": [], "profiles": [], "gaps": [{"wall": "RUNTIME", "reason": "gone"}]}'`)
	_, err := b.Request(b.admin, b.slice("a", 1, 1))
	platformtest.Refused(t, err, fault.CapacityUnavailable, "")
	_, err = b.Request(b.admin, b.whole("b", 1))
	platformtest.Refused(t, err, fault.CapacityUnavailable, "")
	b.SQL(`UPDATE compute_node SET walls = NULL`)
	in := b.slice("c", 1, 1)
	in.IsolationClass = isolation.VM
	_, err = b.Request(b.admin, in)
	platformtest.Refused(t, err, fault.ClassUnavailable, "input.isolationClass")
	b.got(b.slice("d", 1, 1))
}
