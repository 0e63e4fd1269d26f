package layout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// gpuWorkers returns workers of one allocation on one node.
func gpuWorkers(gpus int, ids ...string) (list []adapter.Member) {
	for i, id := range ids {
		member := onNode(id+"1", ComponentWorker, i, 8, 8000)
		member.Node.AllocationID, member.Node.GPUs = "alc_1", gpus
		list = append(list, member)
	}
	return list
}

func TestGPUsOfAnAllocationAreSharedOut(t *testing.T) {
	t.Parallel()
	four := []string{"/dev/nvidia2", "/dev/nvidia3", "/dev/nvidia9", "/dev/nvidia10"}
	equipped := func(workers []adapter.Member, devices []string) Cluster {
		cluster, err := New(Config{}, "1", workers[0], nil, 21000, workers)
		require.NoError(t, err)
		for _, worker := range workers {
			cluster.Equip(worker, devices, workers)
		}
		return cluster
	}
	counts := func(c Cluster) (list []int) {
		for _, worker := range c.Workers {
			list = append(list, worker.GPUs)
		}
		return list
	}
	three := gpuWorkers(4, "mem_a", "mem_b", "mem_c")
	cluster := equipped(three, four)
	require.Equal(t, []int{2, 1, 1}, counts(cluster))
	require.Equal(t, four[:2], cluster.Workers[0].Devices)
	require.Equal(t, four[3:], cluster.Workers[2].Devices)
	require.Equal(t, []int{2, 1, 1}, counts(equipped(three, nil)), "without device nodes they are counted")
	require.Equal(t, []int{1, 1, 0}, counts(equipped(gpuWorkers(2, "mem_a", "mem_b", "mem_c"), four)),
		"never more than the allocation has")
	require.Equal(t, []int{0, 0}, counts(equipped(gpuWorkers(0, "mem_a", "mem_b"), four)))

	elsewhere := gpuWorkers(4, "mem_a", "mem_b")
	elsewhere[1].Node.AllocationID = "alc_2"
	require.Equal(t, []int{4, 4}, counts(equipped(elsewhere, four)), "each allocation has its own")
	require.Equal(t, 8, equipped(elsewhere, four).Workers[1].CPUs)

	late := gpuWorkers(4, "mem_a", "mem_b", "mem_c", "mem_d")
	require.NoError(t, cluster.Place(late[3], "n", late))
	cluster.Equip(late[3], four, late)
	require.Equal(t, []int{2, 1, 1, 0}, counts(cluster), "jobs may be at work on what the others hold")
	cluster.Equip(late[3], four, late, late[1].ID)
	held, _ := cluster.Of(late[3].ID)
	require.Equal(t, four[2:3], held.Devices, "one that makes way leaves its own")
	require.NoError(t, cluster.Place(late[0], "n", late))
	cluster.Equip(late[0], four, late)
	held, _ = cluster.Of(late[0].ID)
	require.Equal(t, four[:2], held.Devices, "who has some keeps them")
	cluster.Equip(late[0], four[1:], late)
	held, _ = cluster.Of(late[0].ID)
	require.Equal(t, four[1:2], held.Devices, "one that is gone is not offered")
}

func TestDevicesAreInTheOrderOfTheirNumbers(t *testing.T) {
	t.Parallel()
	paths := []string{"/dev/nvidia10", "/dev/dri/renderD128", "/dev/nvidia9"}
	SortDevices(paths)
	require.Equal(t, []string{"/dev/dri/renderD128", "/dev/nvidia9", "/dev/nvidia10"}, paths)
	require.Equal(t, 2, GPUCount("gpu:2(S:0-1)"))
	require.Zero(t, GPUCount("(null)"))
}
