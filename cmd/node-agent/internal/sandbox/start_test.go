package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/inject"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
)

// initOf is the number of the member's process 1 on the node.
func initOf(t *testing.T, dir string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "members", memberID, "bundle", "pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	require.NoError(t, err)
	return pid
}

// All of a member's limits and devices are read back from the kernel: the agent writes them where crun does not manage
// the groups.
func TestAMemberIsBornInItsGroupWithItsLimits(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	if b.Isolation().Cgroups != 1 {
		t.Skip("the runtime makes the groups")
	}
	member := sandbox.Member{ID: memberID, InstanceID: instanceID, Walls: sandbox.Walls{
		AllocationID: "alc_share", MemoryMiB: 96, CPUMillis: 500, Pids: 77,
		Devices: []inject.Device{{UUID: "GPU-3", Path: "/dev/nvidia3", Minor: 3, Simulated: true}},
	}}
	_, err := b.Ensure(t.Context(), member)
	require.NoError(t, err)
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", initOf(t, b.dir)))
	require.NoError(t, err)
	at := map[string]string{}
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if fields[1] == "" {
			continue // version 2 has no controllers here
		}
		require.Contains(t, fields[2], "/alc_share/"+memberID, "hierarchy %s", fields[1])
		for name := range strings.SplitSeq(fields[1], ",") {
			at[name] = filepath.Join("/sys/fs/cgroup", name, fields[2])
		}
	}
	holds := func(controller, file string) string {
		raw, err := os.ReadFile(filepath.Join(at[controller], file))
		require.NoError(t, err)
		return strings.TrimSpace(string(raw))
	}
	require.Equal(t, strconv.Itoa(96<<20), holds("memory", "memory.limit_in_bytes"))
	require.Equal(t, strconv.Itoa(96<<20), holds("memory", "../memory.limit_in_bytes"),
		"all members of the allocation together")
	require.Equal(t, "50000", holds("cpu", "../cpu.cfs_quota_us"))
	require.Equal(t, "77", holds("pids", "pids.max"))
	require.Equal(t, "100000 50000 512", strings.Join([]string{holds("cpu", "cpu.cfs_period_us"),
		holds("cpu", "cpu.cfs_quota_us"),
		holds("cpu", "cpu.shares")}, " "))
	devices := strings.Split(holds("devices", "devices.list"), "\n")
	slices.Sort(devices)
	require.Equal(t, []string{"c 136:* rw", "c 1:3 rw", "c 1:5 rw", "c 1:7 rw", "c 1:8 rw", "c 1:9 rw", "c 5:0 rw",
		"c 5:2 rw",
		"c 60:3 rw"}, devices)
	// The thread that the member was born from has entered the group; it ends a moment after the member is there.
	require.Eventually(t, func() bool {
		group, err := os.ReadFile(filepath.Join(at["memory"], "cgroup.procs"))
		return err == nil && !slices.Contains(strings.Fields(string(group)), strconv.Itoa(os.Getpid()))
	}, 30*time.Second, time.Millisecond, "the agent has left")
	tasks := strings.Fields(holds("pids", "tasks"))
	require.NotContains(t, tasks, strconv.Itoa(os.Getpid()))
	require.NotContains(t, tasks, strconv.Itoa(unix.Gettid()))
}

// The filter of the first member of a profile is compiled, and later ones are given what came of it.
func TestMembersHaveTheFilterThatWasCompiledForEarlierOnes(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	if b.Isolation().Runtime != "crun" {
		t.Skip("only crun takes a compiled filter")
	}
	for _, profile := range []oci.Profile{oci.Service, oci.Nesting} {
		var before []byte
		for range 2 {
			member := sandbox.Member{ID: memberID, InstanceID: instanceID, Walls: sandbox.Walls{Profile: profile}}
			client, err := b.Ensure(t.Context(), member)
			require.NoError(t, err)
			status := runs(t, client, shell("tsk_a",
				"grep Seccomp: /proc/self/status; cat /proc/self/status | grep NoNewPrivs"))
			require.Equal(t, "Seccomp:\t2\nNoNewPrivs:\t1\n", string(status.Stdout))
			loaded, err := os.ReadFile(filepath.Join(b.dir, "runtime", memberID, "seccomp.bpf"))
			require.NoError(t, err)
			require.NotEmpty(t, loaded)
			config, err := os.ReadFile(filepath.Join(b.dir, "members", memberID, "bundle", "config.json"))
			require.NoError(t, err)
			require.Contains(t, string(config), `"seccomp":{`, "what it was compiled from stays in the configuration")
			if before != nil {
				require.Equal(t, before, loaded)
				require.Contains(t, string(config), "run.oci.seccomp_bpf_data")
			}
			before = loaded
			left, err := b.Teardown(t.Context(), memberID)
			require.NoError(t, err)
			require.True(t, left.Empty(), "%+v", left)
		}
	}
}

// noWires is a network that no member can be attached to.
type noWires struct{ attached []int }

var errWires = errors.New("no wires")

func (*noWires) Await(context.Context, string) (string, error) { return "100.64.0.1", nil }
func (*noWires) Address(string) string                         { return "100.64.0.1" }
func (*noWires) Detach(string) error                           { return nil }
func (*noWires) Left(string) ([]string, error)                 { return nil, nil }
func (*noWires) Dial(context.Context, int, string, string) (net.Conn, error) {
	return nil, errWires
}

func (n *noWires) Attach(_ context.Context, _ string, pid int) error {
	n.attached = append(n.attached, pid)
	return errWires
}

func TestAMemberWithoutItsNetworkDoesNotStart(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	dir, wires := t.TempDir(), &noWires{}
	m, err := sandbox.NewManager(t.Context(), sandbox.Options{StateDir: dir, Root: testRoot, Network: wires,
		Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	for range 2 { // a second try finds nothing that lives
		_, err = m.Ensure(t.Context(), of(""))
		require.ErrorContains(t, err, "no wires")
		require.NoFileExists(t, filepath.Join(dir, "members", memberID, "sandbox.json"),
			"no record: nobody may connect to it")
		pid := initOf(t, dir)
		eventually(t, func() bool { return unix.Kill(pid, 0) != nil }, "process 1 is ended")
	}
	require.Len(t, wires.attached, 2)
	left, err := m.Teardown(t.Context(), memberID)
	require.NoError(t, err)
	require.True(t, left.Empty(), "%+v", left)
}

// A member's folder is deleted: this does not hide what runs.
func TestAMemberWhoseFolderIsLostIsStillFoundAndReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	b.ensure(t)
	old := initOf(t, b.dir)
	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "members", memberID)))
	b.ensure(t)
	require.NotEqual(t, old, initOf(t, b.dir))
	eventually(t, func() bool { return unix.Kill(old, 0) != nil }, "the one from before is ended")
}

// Masks are hygiene, which a nesting member does without.
func TestAServiceMemberSeesNothingWhereMasksAre(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	if b.Isolation().Runtime == "" {
		t.Skip("containers need root")
	}
	seen := runs(t, b.ensure(t), shell("tsk_a", `cat /proc/keys /proc/timer_list /proc/interrupts 2>/dev/null | wc -c
for at in bus fs irq sys; do awk -v at=/proc/$at '$5 == at && $6 ~ /^ro/ {print at}' /proc/self/mountinfo; done`))
	require.Equal(t, "0\n/proc/bus\n/proc/fs\n/proc/irq\n/proc/sys\n", string(seen.Stdout), "%s", seen.Stderr)
}
