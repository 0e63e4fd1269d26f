package oci

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree is a hierarchy of files as the kernel shows them.
func tree(t *testing.T, names string, files map[string]string) hierarchy {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, "parent", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return hierarchy{names: names, root: root}
}

func TestUsageOfVersion2(t *testing.T) {
	t.Parallel()
	groups := &Cgroups{Version: 2, parent: "parent", roots: []hierarchy{tree(t, "", map[string]string{
		"alo/memory.max": "1000000\n", "alo/cpu.max": "50000 100000\n",
		"alo/mem/memory.max": "max\n", "alo/mem/cpu.max": "max 100000\n", "alo/mem/memory.current": "900000\n",
		"alo/mem/memory.stat": "anon 1\nfile 2\ninactive_file 300000\n",
		"alo/mem/cpu.stat":    "usage_usec 2500000\nuser_usec 1\n",
		"alo/mem/io.stat":     "8:0 rbytes=100 wbytes=30 rios=1 wios=1\n8:16 rbytes=5 wbytes=6\n",
	})}}
	require.Equal(t, Usage{CPUSeconds: 2.5, CPULimit: 0.5, Memory: 600_000, MemoryLimit: 1_000_000, DiskRead: 105,
		DiskWritten: 36}, groups.Usage("alo/mem"))
}

func TestUsageOfVersion1(t *testing.T) {
	t.Parallel()
	groups := &Cgroups{Version: 1, parent: "parent", roots: []hierarchy{
		tree(t, "cpu,cpuacct", map[string]string{"alo/mem/cpuacct.usage": "2500000000\n",
			"alo/mem/cpu.cfs_quota_us": "-1\n", "alo/mem/cpu.cfs_period_us": "100000\n"}),
		tree(t, "memory", map[string]string{"alo/mem/memory.usage_in_bytes": "100\n",
			"alo/mem/memory.stat": "cache 1\nhierarchical_memory_limit 9223372036854771712\n" +
				"total_inactive_file 300\n"}),
		tree(t, "blkio", map[string]string{"alo/mem/blkio.throttle.io_service_bytes_recursive": "8:0 Read 7\n" +
			"8:0 Write 9\n8:0 Total 16\nTotal 16\n"}),
	}}
	u := groups.Usage("alo/mem")
	require.True(t, math.IsNaN(u.CPULimit), "no quota anywhere")
	require.True(t, math.IsNaN(u.MemoryLimit), "no limit anywhere")
	u.CPULimit, u.MemoryLimit = 0, 0
	require.Equal(t, Usage{CPUSeconds: 2.5, Memory: 0, DiskRead: 7, DiskWritten: 9}, u)
}

func TestUsageOfAGroupThatIsGoneIsUnknown(t *testing.T) {
	t.Parallel()
	u := (&Cgroups{Version: 2, parent: "parent",
		roots: []hierarchy{tree(t, "", map[string]string{"a": ""})}}).Usage("alo/mem")
	for _, value := range []float64{u.CPUSeconds, u.CPULimit, u.Memory, u.MemoryLimit, u.DiskRead, u.DiskWritten} {
		require.True(t, math.IsNaN(value))
	}
}
