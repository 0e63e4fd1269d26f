package slurm

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

var update = flag.Bool("update", false, "write the golden files anew")

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
		Node: adapter.Node{ID: "nod_" + id[len(id)-1:], Name: "n", Address: "10.77.0." + id[len(id)-1:], CPUs: cpus, MemoryMiB: memory},
	}
}

func TestConfigurationIsRenderedAsKept(t *testing.T) {
	t.Parallel()
	controller := onNode("mem_c1", componentController, 0, 2, 2048)
	cases := map[string]struct {
		config  Config
		workers []adapter.Member
	}{
		"single_node.conf": {Config{}, []adapter.Member{onNode("mem_w1", componentWorker, 0, 2, 2048)}},
		"shared_node.conf": {
			Config{ClusterName: "lab", PartitionName: "batch", MaxJobMinutes: 90},
			// Out of order, with a gap, two on one node.
			[]adapter.Member{
				onNode("mem_x2", componentWorker, 3, 8, 16000), onNode("mem_y1", componentWorker, 0, 4, 8000), onNode("mem_z1", componentWorker, 1, 4, 8000),
			},
		},
		"overruled.conf": {
			Config{CPUsPerNode: 6, MemoryMiBPerNode: 5000, BackfillSeconds: 30, BatchDelaySeconds: 3, Accounting: &Accounting{Enabled: new(bool)}},
			[]adapter.Member{onNode("mem_w1", componentWorker, maxWorkers-1, 0, 0)},
		},
		"unknown_hardware.conf": {Config{}, []adapter.Member{onNode("mem_w1", componentWorker, 0, 0, 0)}},
	}
	for name, c := range cases {
		hosts := map[string]string{"mem_c1": "na", "mem_w1": "na", "mem_y1": "na", "mem_z1": "na", "mem_x2": "nb"}
		cluster, err := plan(c.config, "1.2.3", controller, hosts, 21000, c.workers)
		require.NoError(t, err)
		cluster.label("mem_y1", map[string]string{"zone": "eu", "fast": "", "odd": "a b&c"})
		text, err := renderSlurmConf(cluster)
		require.NoError(t, err)
		golden(t, name, text)

		read, err := parseConf(text)
		require.NoError(t, err)
		read.Config = cluster.Config
		require.Equal(t, cluster, read, "what was written is the record")
	}
	text, err := renderCgroupConf()
	require.NoError(t, err)
	golden(t, "cgroup.conf", text)
	cluster, err := plan(Config{}, "1.2.3", controller, map[string]string{"mem_c1": "na"}, 21000, nil)
	require.NoError(t, err)
	text, err = renderSlurmdbdConf(cluster, "secret")
	require.NoError(t, err)
	golden(t, "slurmdbd.conf", text)
}

func TestWorkersKeepTheirSlotsAndNewOnesGetFreeOnes(t *testing.T) {
	t.Parallel()
	require.Equal(t, accountingPort(21000)-1, workerPort(21000, maxWorkers-1), "the block has room for all, and slurmdbd")
	workers := []adapter.Member{onNode("mem_w1", componentWorker, 0, 1, 1), onNode("mem_v1", componentWorker, 5, 1, 1)}
	cluster, err := plan(Config{}, "1", workers[0], nil, 21000, workers)
	require.NoError(t, err)
	late := onNode("mem_late", componentWorker, maxWorkers+3, 1, 1)
	require.NoError(t, cluster.place(late, "n", workers))
	held, ok := cluster.Of("mem_late")
	require.True(t, ok)
	require.Equal(t, 1, held.Slot, "an index beyond the block gets the lowest free slot")
	require.NoError(t, cluster.place(late, "n2", workers))
	held, _ = cluster.Of("mem_late")
	require.Equal(t, Worker{Slot: 1, MemberID: "mem_late", Host: "n2", Address: late.Node.Address, CPUs: 1, MemoryMiB: minMemory}, held)
	cluster.busy = []int{workerPort(21000, 2)}
	require.NoError(t, cluster.place(onNode("mem_two", componentWorker, 2, 1, 1), "n", workers))
	held, _ = cluster.Of("mem_two")
	require.Equal(t, 3, held.Slot, "another program has the port of its index")
	for i := range maxWorkers - 5 {
		require.NoError(t, cluster.place(onNode(fmt.Sprintf("mem_f%d", i), componentWorker, 200, 1, 1), "n", nil))
	}
	var full adapter.OperationError
	require.ErrorAs(t, cluster.place(onNode("mem_over", componentWorker, 200, 1, 1), "n", nil), &full)
	require.Equal(t, "NO_FREE_SLOT", full.Code)
}

func TestRecordOfAnEarlierVersionIsReadByIndex(t *testing.T) {
	t.Parallel()
	held, err := parseRoll("SlurmctldHost=na(10.0.0.1)\nSlurmctldPort=21000\nNodeName=w0 NodeAddr=10.0.0.1 NodeHostname=na Port=21001 CPUs=2 RealMemory=900 State=UNKNOWN\n"+
		"NodeName=w[1-126] Port=21002-21127 CPUs=2 RealMemory=900 State=FUTURE\n=== nodes\nw0|idle\n=== slurmctld\nup\n",
		[]adapter.Member{onNode("mem_w1", componentWorker, 0, 1, 1)})
	require.NoError(t, err)
	require.True(t, held.up)
	require.Equal(t, map[string]string{"w0": "idle"}, held.states)
	require.Equal(t, []Worker{{Slot: 0, MemberID: "mem_w1", Host: "na", Address: "10.0.0.1", CPUs: 2, MemoryMiB: 900}}, held.Workers)
	_, err = parseRoll("=== nodes\n", nil)
	require.ErrorContains(t, err, "names no controller")
}

func TestPortBlocksAvoidWhatListens(t *testing.T) {
	t.Parallel()
	candidates := portCandidates("ins_1")
	require.Len(t, candidates, portBlocks)
	for _, base := range candidates {
		require.GreaterOrEqual(t, base, portFirst)
		require.Less(t, base+portBlock, 32768, "outgoing connections begin there")
	}
	base, err := freeBlock("ins_1", []int{22, candidates[0] + portBlock - 1, candidates[1]})
	require.NoError(t, err)
	require.Equal(t, candidates[2], base)
	_, err = freeBlock("ins_1", candidates)
	require.ErrorContains(t, err, "no block of ports is free")

	ports, err := parsePorts("0016\n1F90\n")
	require.NoError(t, err)
	require.Equal(t, []int{22, 8080}, ports)
	_, err = parsePorts("xyz")
	require.Error(t, err)
}

func TestMungeKeysDifferByInstanceAndOutliveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys, err := openKeyring(dir)
	require.NoError(t, err)
	one, err := keys.munge("ins_1")
	require.NoError(t, err)
	require.Len(t, one, mungeSize)
	two, err := keys.munge("ins_2")
	require.NoError(t, err)
	require.NotEqual(t, one, two)
	again, err := openKeyring(dir)
	require.NoError(t, err)
	same, err := again.munge("ins_1")
	require.NoError(t, err)
	require.Equal(t, one, same)
	password, err := keys.password("ins_1")
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-f]{48}$`, password)
	info, err := os.Stat(filepath.Join(dir, "master.key"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "master.key"), []byte("short"), 0o600))
	_, err = openKeyring(dir)
	require.ErrorContains(t, err, "32 bytes")
}

func TestManifestIsValidOncePublished(t *testing.T) {
	t.Parallel()
	compiled, err := jsonschema.NewCompiler().Compile("../../../../domain/manifest/manifest.schema.json")
	require.NoError(t, err)
	digest := "sha256:" + strings.Repeat("a", 64)
	text := strings.Replace(string(readManifest(t)), `"ref": ""`, `"ref": "registry.example/apps/controller@`+digest+`"`, 1)
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(text, `"digest": ""`, `"digest": "`+digest+`"`, 1)))
	require.NoError(t, err)
	require.NoError(t, compiled.Validate(document))
}
