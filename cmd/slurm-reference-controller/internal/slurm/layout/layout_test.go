package layout

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestWorkerNamesHoldTheirSlots(t *testing.T) {
	t.Parallel()
	slot, ok := workerSlot("w12")
	require.True(t, ok)
	require.Equal(t, 12, slot)
	for _, name := range []string{"12", "w", "w-1", "w128", "x1"} {
		_, ok = workerSlot(name)
		require.False(t, ok, name)
	}
}

var update = flag.Bool("update", false, "write the golden files again")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "run with -update and read the difference")
}

func onNode(id, component string, index, cpus, memory int) adapter.Member {
	return adapter.Member{
		ID: id, ComponentKey: component, Index: index,
		Node: adapter.Node{
			ID: "nod_" + id[len(id)-1:], Name: "n", Address: "10.77.0." + id[len(id)-1:], CPUs: cpus,
			MemoryMiB: memory,
		},
	}
}

func TestConfigurationIsRenderedAsKept(t *testing.T) {
	t.Parallel()
	controller := onNode("mem_c1", ComponentController, 0, 2, 2048)
	cases := map[string]struct {
		config  Config
		workers []adapter.Member
	}{
		"single_node.conf": {Config{}, []adapter.Member{onNode("mem_w1", ComponentWorker, 0, 2, 2048)}},
		"shared_node.conf": {
			Config{ClusterName: "lab", PartitionName: "batch", MaxJobMinutes: 90},
			// Out of order, with a gap, two on one node.
			[]adapter.Member{
				onNode(
					"mem_x2", ComponentWorker, 3, 8, 16000,
				), onNode("mem_y1", ComponentWorker, 0, 4, 8000), onNode("mem_z1", ComponentWorker, 1, 4, 8000),
			},
		},
		"overruled.conf": {
			Config{
				CPUsPerNode: 6, MemoryMiBPerNode: 5000, BackfillSeconds: 30, BatchDelaySeconds: 3,
				Accounting: &Accounting{Enabled: new(bool)},
			},
			[]adapter.Member{onNode("mem_w1", ComponentWorker, MaxWorkers-1, 0, 0)},
		},
		"unknown_hardware.conf": {Config{}, []adapter.Member{onNode("mem_w1", ComponentWorker, 0, 0, 0)}},
	}
	for name, c := range cases {
		hosts := map[string]string{"mem_c1": "na", "mem_w1": "na", "mem_y1": "na", "mem_z1": "na", "mem_x2": "nb"}
		cluster, err := New(c.config, "1.2.3", controller, hosts, 21000, c.workers)
		require.NoError(t, err)
		if name == "shared_node.conf" {
			cluster.Workers[0].GPUs, cluster.Workers[0].Devices = 2, []string{"/dev/nvidia2", "/dev/nvidia10"}
			cluster.Workers[1].GPUs, cluster.Workers[1].Prolog = 1, false
			cluster.Workers[2].GPUs, cluster.Workers[2].Devices = 1, []string{"/dev/dri/renderD128"}
		}
		cluster.Label("mem_y1", map[string]string{"zone": "eu", "fast": "", "odd": "a b&c"})
		text, err := RenderSlurmConf(cluster)
		require.NoError(t, err)
		golden(t, name, text)

		read, err := Parse(text)
		require.NoError(t, err)
		read.Config = cluster.Config
		require.Equal(t, cluster, read, "what was written is the record")
	}
	text, err := RenderCgroupConf()
	require.NoError(t, err)
	golden(t, "cgroup.conf", text)
	cluster, err := New(Config{}, "1.2.3", controller, map[string]string{"mem_c1": "na"}, 21000, nil)
	require.NoError(t, err)
	text, err = RenderSlurmdbdConf(cluster, "secret")
	require.NoError(t, err)
	golden(t, "slurmdbd.conf", text)
}

func TestWorkersKeepTheirSlotsAndNewOnesGetFreeOnes(t *testing.T) {
	t.Parallel()
	require.Equal(t, accountingPort(21000)-1, WorkerPort(21000, MaxWorkers-1),
		"the block has room for all, and slurmdbd")
	workers := []adapter.Member{onNode("mem_w1", ComponentWorker, 0, 1, 1), onNode("mem_v1", ComponentWorker, 5, 1, 1)}
	cluster, err := New(Config{}, "1", workers[0], nil, 21000, workers)
	require.NoError(t, err)
	late := onNode("mem_late", ComponentWorker, MaxWorkers+3, 1, 1)
	require.NoError(t, cluster.Place(late, "n", workers))
	held, ok := cluster.Of("mem_late")
	require.True(t, ok)
	require.Equal(t, 1, held.Slot, "an index beyond the block gets the lowest free slot")
	require.NoError(t, cluster.Place(late, "n2", workers))
	held, _ = cluster.Of("mem_late")
	require.Equal(
		t,
		Worker{
			Slot: 1, MemberID: "mem_late", Host: "n2", Address: late.Node.Address, CPUs: 1, MemoryMiB: minMemory,
			Prolog: true,
		},
		held,
	)
	cluster.Busy = []int{WorkerPort(21000, 2)}
	require.NoError(t, cluster.Place(onNode("mem_two", ComponentWorker, 2, 1, 1), "n", workers))
	held, _ = cluster.Of("mem_two")
	require.Equal(t, 3, held.Slot, "another program has the port of its index")
	for i := range MaxWorkers - 5 {
		require.NoError(t, cluster.Place(onNode(fmt.Sprintf("mem_f%d", i), ComponentWorker, 200, 1, 1), "n", nil))
	}
	var full adapter.OperationError
	require.ErrorAs(t, cluster.Place(onNode("mem_over", ComponentWorker, 200, 1, 1), "n", nil), &full)
	require.Equal(t, "NO_FREE_SLOT", full.Code)
}

func TestPortBlocksAvoidWhatListens(t *testing.T) {
	t.Parallel()
	candidates := portCandidates("ins_1")
	require.Len(t, candidates, portBlocks)
	for _, base := range candidates {
		require.GreaterOrEqual(t, base, portFirst)
		require.Less(t, base+PortBlock, 32768, "outgoing connections begin there")
	}
	base, err := FreeBlock("ins_1", []int{22, candidates[0] + PortBlock - 1, candidates[1]})
	require.NoError(t, err)
	require.Equal(t, candidates[2], base)
	_, err = FreeBlock("ins_1", candidates)
	require.ErrorContains(t, err, "no block of free ports is left")

	ports, err := ParsePorts("0016\n1F90\n")
	require.NoError(t, err)
	require.Equal(t, []int{22, 8080}, ports)
	_, err = ParsePorts("xyz")
	require.Error(t, err)
}

func TestLabelsBecomeFeatures(t *testing.T) {
	t.Parallel()
	require.Equal(
		t, []string{"gpu", "odd=a_b_", "zone=eu-1"},
		Features(map[string]string{"zone": "eu-1", "gpu": "", "odd": "a&b,"}),
	)
	require.Empty(t, Features(nil))
}
