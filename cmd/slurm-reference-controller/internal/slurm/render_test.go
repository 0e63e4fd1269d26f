package slurm

import (
	"flag"
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
		"overruled.conf":        {Config{CPUsPerNode: 6, MemoryMiBPerNode: 5000}, []adapter.Member{onNode("mem_w1", componentWorker, maxIndex, 0, 0)}},
		"unknown_hardware.conf": {Config{}, []adapter.Member{onNode("mem_w1", componentWorker, 0, 0, 0)}},
	}
	for name, c := range cases {
		text, err := renderSlurmConf(plan(c.config, controller, map[string]string{"mem_c1": "na", "mem_w1": "na", "mem_y1": "na", "mem_z1": "na", "mem_x2": "nb"}, 21000, c.workers))
		require.NoError(t, err)
		golden(t, name, text)
	}
	text, err := renderCgroupConf()
	require.NoError(t, err)
	golden(t, "cgroup.conf", text)
}

func TestEveryWorkerHasItsNodeLineAndPortOnce(t *testing.T) {
	t.Parallel()
	workers := []adapter.Member{onNode("mem_w1", componentWorker, 0, 1, 1), onNode("mem_v1", componentWorker, 5, 1, 1), onNode("mem_u1", componentWorker, maxIndex, 1, 1)}
	cluster := plan(Config{}, workers[0], nil, 21000, workers)
	require.Equal(t, []slot{{"w[1-4]", "21002-21005"}, {"w[6-125]", "21007-21126"}}, spare(cluster))
	require.Equal(t, 21000+portBlock-1, workerPort(21000, maxIndex), "the block has room for all")
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
