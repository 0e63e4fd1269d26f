package chaos_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/chaos"
	ledger "github.com/gpuaas/app-platform/rig/chaos/adapter"
	"github.com/gpuaas/app-platform/rig/lab"
	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/rig/turned"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
)

// program is the name under which this test binary is the adapter.
const program = "chaos-controller"

var (
	seed  = flag.Uint64("chaos.seed", 0, "what the run follows from; 0 takes one at random")
	long  = flag.Bool("chaos.long", false, "hundreds of operations instead of dozens")
	least = flag.Int("chaos.operations", 0,
		"how many operations must be accepted; thousands have a larger installation")
	built = flag.String("chaos.bin", "../../bin", "the folder of the built programs")
	floor = flag.String("chaos.floor", "../../bin/floor/app-platform", "a server of an older build, if it is there")
)

func TestMain(m *testing.M) {
	lab.MaybeRunInit()
	if filepath.Base(os.Args[0]) == program {
		os.Exit(controller.Main(controller.Spec{
			Name: "chaos", Manifest: ledger.Manifest, App: func(dir string) (adapter.App, error) {
				return ledger.New(dir)
			},
		}))
	}
	if turned.Asked() {
		os.Exit(turned.Serve())
	}
	os.Exit(m.Run())
}

// hindered are the servers by links of their own, which are this test binary at first; the last works alone. Builds are
// what it may be besides.
func hindered(t *testing.T, bin string, count int) (servers []chaos.Server, programs, builds []string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	builds = []string{self}
	if older, err := filepath.Abs(*floor); err == nil {
		if _, err := os.Stat(older); err == nil {
			builds = append(builds, older)
		}
	}
	for number := 1; number <= count; number++ {
		link, err := turned.Link(bin, number)
		require.NoError(t, err)
		servers = append(servers, chaos.Server{Program: link, Skew: turned.Skew(link), Worker: number == count})
		programs = append(programs, link)
	}
	return servers, programs, builds
}

// programs is a folder with the built programs and this one as the adapter.
func programs(t *testing.T) string {
	t.Helper()
	built, err := filepath.Abs(*built)
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(built, "app-platform"))
	require.NoError(t, err, "the programs are not built; run make build first, or make test for everything")
	bin := t.TempDir()
	for _, name := range []string{"app-platform", "node-agent"} {
		require.NoError(t, os.Symlink(filepath.Join(built, name), filepath.Join(bin, name)))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(bin, program)))
	return bin
}

// size is how much there is of everything, and how many GPUs each node has for it.
func size() (config chaos.Config, gpus int) {
	config = chaos.Config{
		Seed: *seed, Instances: 4, Changes: 6, Subscribers: 4, Followed: 40, Faults: 10, Operations: *least,
		Between: 1500 * time.Millisecond, Settle: 4 * time.Minute, Out: os.Stderr,
	}
	if config.Seed == 0 {
		config.Seed = rand.Uint64N(1 << 32)
	}
	if *long {
		config.Instances, config.Changes, config.Subscribers, config.Followed = 5, 50, 6, 200
		config.Faults, config.Between, config.Settle = 0, 5*time.Second, 10*time.Minute
	}
	if *least > 400 {
		config.Instances, config.Subscribers, config.Between = min(max(10, *least/300), 30), 2, 10*time.Second
		config.Changes, config.Settle = *least/config.Instances, 20*time.Minute
	}
	return config, 2 * (config.Instances + 2)
}

// disks puts the adapter's folder and those of the nodes on small disks, where that can be.
func disks(t *testing.T, config *chaos.Config, dir string, nodes int) {
	t.Helper()
	mount := func(folder string, bytes int) *chaos.Disk {
		disk, err := chaos.Mount(filepath.Join(dir, folder), int64(bytes))
		if err != nil {
			t.Logf("no disk is full in this run: %v", err)
			return nil
		}
		t.Cleanup(func() { require.NoError(t, disk.Unmount()) })
		return disk
	}
	require.NoError(t, chaos.SweepDisks())
	if config.AdapterDisk = mount("controllers/chaos", 32<<20+config.Operations*24<<10); config.AdapterDisk == nil {
		return
	}
	for number := 1; number <= nodes; number++ {
		config.NodeDisks = append(config.NodeDisks, mount(fmt.Sprintf("nodes/node-%d", number), 128<<20))
	}
}

func TestNothingIsLostOrDoneTwiceWhilePartsAreKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it brings a whole installation up")
	}
	const nodes = 3
	config, gpus := size()
	t.Logf("repeat with: go test ./rig/chaos -args -chaos.seed=%d -chaos.long=%v -chaos.operations=%d",
		config.Seed, *long, *least)
	dir, bin := t.TempDir(), programs(t)
	disks(t, &config, dir, nodes)
	servers, started, builds := hindered(t, bin, 3)
	config.Servers, config.Builds, config.AdapterProgram = servers, builds, filepath.Join(bin, program)
	up, err := stack.Up(t.Context(), stack.Config{
		Dir: dir, Bin: bin, Listen: "127.0.0.1:0", Servers: 3,
		Roles:    []string{"api,billing", "api,worker,billing", "worker"},
		Programs: started, Nodes: nodes, NodeGPUs: gpus, Out: os.Stderr,
		Apps: []stack.App{{Slug: "chaos", Controller: program, Family: "apps"}},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, up.Close())
	})
	suite := chaos.New(config, up, filepath.Join(dir, "controllers", "chaos", "app"))
	wrong, err := suite.Run(t.Context())
	if err != nil || len(wrong) > 0 {
		keepLogs(t, up.LogDir())
	}
	require.NoError(t, err, "seed %d", config.Seed)
	require.Empty(t, wrong, "seed %d", config.Seed)
	require.Greater(t, suite.Accepted(), config.Instances*(4+config.Changes/2),
		"too little was accepted to show anything")
	if *long {
		require.GreaterOrEqual(t, suite.Accepted(), max(200, *least))
	}
}

// keepLogs prints the end of every log: the folder goes with the test.
func keepLogs(t *testing.T, dir string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, file := range files {
		content, _ := os.ReadFile(file)
		fmt.Fprintf(os.Stderr, "---- %s\n%s\n", filepath.Base(file), content[max(0, len(content)-40_000):])
	}
}
