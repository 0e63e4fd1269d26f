package sandbox_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/idrange"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/inject"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/exectest"
)

const secondID = "mem_0000000000000000000second"

// refused requires that a start ends with a code and words that name the remedy, and that nothing was begun.
func refused(t *testing.T, m *sandbox.Manager, dir string, walls sandbox.Walls, code string, words ...string) {
	t.Helper()
	_, err := m.Ensure(t.Context(), sandbox.Member{ID: secondID, InstanceID: instanceID, Walls: walls})
	require.Error(t, err)
	require.Equal(t, code, wire.AsError(err).Code, "%v", err)
	for _, word := range words {
		require.ErrorContains(t, err, word)
	}
	require.NoDirExists(t, filepath.Join(dir, "members", secondID))
	left, err := m.Residue(secondID)
	require.NoError(t, err)
	require.True(t, left.Empty(), "%+v", left)
}

func TestWhatTheNodeHasNotIsRefusedBeforeAnythingIsStarted(t *testing.T) {
	t.Parallel()
	b := setup(t, true) // plain processes: WHOLE_NODE and SERVICE alone
	refused(t, b.Manager, b.dir, sandbox.Walls{Class: sandbox.ClassVM}, wire.CodeIsolationUnavailable, "class VM",
		"place the member on one that does")
	refused(t, b.Manager, b.dir, sandbox.Walls{Profile: oci.Nesting}, wire.CodeProfileUnavailable, "profile NESTING",
		"place the member on one that does")
}

func TestADeviceThatIsNotThereIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	if b.Isolation().Mode != memberinit.ModeContainer {
		t.Skip("containers need root")
	}
	for name, one := range map[string]struct {
		device inject.Device
		words  string
	}{
		"absent": {inject.Device{UUID: "GPU-a", Path: "/dev/nvidia77", Minor: 77},
			"device GPU-a is not at /dev/nvidia77"},
		"another now": {inject.Device{UUID: "GPU-a", Path: "/dev/null", Minor: 77}, "has the number 3 and not 77"},
		"no device":   {inject.Device{UUID: "GPU-a", Path: "/dev/shm", Minor: 0}, "it is not a character device"},
		"elsewhere":   {inject.Device{UUID: "GPU-a", Path: "/dev/../etc/x", Simulated: true}, "not a path below /dev"},
		"no CDI":      {inject.Device{UUID: "GPU-a", CDI: "vendor.test/gpu=none"}, "lack vendor.test/gpu=none"},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, b.Manager, b.dir, sandbox.Walls{Devices: []inject.Device{one.device}},
				wire.CodeDeviceMissing, one.words)
		})
	}
}

// The platform's database gives a device to one allocation. Where a task says otherwise, the agent goes by what it has
// started itself.
func TestADeviceOfAnotherAllocationIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	if b.Isolation().Mode != memberinit.ModeContainer {
		t.Skip("containers need root")
	}
	gpu := func(uuid string) []inject.Device {
		return []inject.Device{{UUID: uuid, Path: "/dev/nvidia0", Simulated: true}}
	}
	first := sandbox.Member{ID: memberID, InstanceID: instanceID,
		Walls: sandbox.Walls{AllocationID: "alc_a", Devices: gpu("GPU-0")}}
	_, err := b.Ensure(t.Context(), first)
	require.NoError(t, err)
	refused(t, b.Manager, b.dir, sandbox.Walls{AllocationID: "alc_b", Devices: gpu("GPU-0")},
		wire.CodeDeviceNotAllocated, "GPU-0", memberID, "alc_a")
	for allocation, uuid := range map[string]string{"alc_a": "GPU-0", "alc_b": "GPU-1"} {
		_, err := b.Ensure(t.Context(), sandbox.Member{ID: secondID, InstanceID: instanceID,
			Walls: sandbox.Walls{AllocationID: allocation, Devices: gpu(uuid)}})
		require.NoError(t, err, "members of an allocation share its devices, and others have theirs")
		left, err := b.Teardown(t.Context(), secondID)
		require.NoError(t, err)
		require.True(t, left.Empty(), "%+v", left)
	}
}

// A node all of whose ids are in use starts no further member, whenever its agent began; what it has goes on, and one
// that leaves makes place.
func TestIDsThatAreAllInUseAreRefusedAndComeBack(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	dir := t.TempDir()
	options := sandbox.Options{StateDir: dir, IDFirst: idrange.DefaultFirst + 40_000*idrange.Size, IDRanges: 1}
	for range 2 { // the agent is started again
		m := manage(t, options)
		require.Equal(t, memberinit.ModeContainer, m.Isolation().Mode, m.Isolation().Reason)
		_, err := m.Ensure(t.Context(), of(""))
		require.NoError(t, err)
		refused(t, m, dir, sandbox.Walls{}, wire.CodeMemberIDsExhausted, "all 1 id ranges", "remove members of it")
	}
	m := manage(t, options)
	left, err := m.Teardown(t.Context(), memberID)
	require.NoError(t, err)
	require.True(t, left.Empty(), "%+v", left)
	_, err = m.Ensure(t.Context(), sandbox.Member{ID: secondID, InstanceID: instanceID})
	require.NoError(t, err)
	_, err = m.Teardown(t.Context(), secondID)
	require.NoError(t, err)
}

func TestARuntimeThatDoesNotServeIsRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("runtimes need root")
	}
	for printed, one := range map[string]struct{ code, words string }{
		"crun version 1.4.4": {wire.CodeRuntimeTooOld, "is of version 1.4.4; install 1.4.5 or later"},
		"crun by somebody":   {wire.CodeRuntimeTooOld, "does not report its version; install 1.4.5 or later"},
		"crun version 1.8.1": {wire.CodeRuntimeMissing, "try a container: crun"}, // its calls do nothing
	} {
		program, dir := filepath.Join(t.TempDir(), "crun"), t.TempDir()
		exectest.Write(t, program, "#!/bin/sh\necho '"+printed+"'\n")
		m := manage(t, sandbox.Options{StateDir: dir, Runtime: program})
		require.False(t, m.Recheck(), "it is no better later")
		require.Empty(t, m.Isolation().Classes)
		require.Contains(t, m.Isolation().Gaps[0].Reason, one.words)
		refused(t, m, dir, sandbox.Walls{}, one.code, one.words)
	}
}

// The runtime is not installed any more when the agent starts, and a member from before is alive. Its teardown is as
// complete, and its evidence as true, as with a runtime.
func TestAMemberOutlivesItsRuntimeAndIsTakenDownWithoutIt(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	program, _ := standIn(t, "crun")
	dir, parent := t.TempDir(), "/gpuaas-test-"+filepath.Base(t.TempDir())+"-"+strings.ToLower(t.Name()[:8])
	options := sandbox.Options{StateDir: dir, Runtime: program, CgroupParent: parent, Root: testRoot,
		Log: slog.New(slog.DiscardHandler)}
	before, err := sandbox.NewManager(t.Context(), options)
	require.NoError(t, err)
	_, err = before.Ensure(t.Context(), of(""))
	require.NoError(t, err)
	pid := initOf(t, dir)
	require.NoError(t, os.Remove(program))

	m, err := sandbox.NewManager(t.Context(), options)
	require.NoError(t, err)
	require.Empty(t, m.Isolation().Classes)
	found, err := m.Residue(memberID)
	require.NoError(t, err)
	require.NotEmpty(t, found.Cgroups, "the evidence sees its groups")
	refused(t, m, dir, sandbox.Walls{}, wire.CodeRuntimeMissing, "install")
	left, err := m.Teardown(context.Background(), memberID)
	require.NoError(t, err)
	require.True(t, left.Empty(), "%+v", left)
	eventually(t, func() bool { return unix.Kill(pid, 0) != nil }, "it is ended")
	groups, err := filepath.Glob("/sys/fs/cgroup/*" + parent)
	require.NoError(t, err)
	require.Empty(t, groups)
	for _, kept := range []string{"runtime", "ids"} {
		names, err := os.ReadDir(filepath.Join(dir, kept))
		require.NoError(t, err)
		require.Empty(t, names, "nothing of it is in %s", kept)
	}
}
