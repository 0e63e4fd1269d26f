package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

func TestDeadInitIsTold(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		runs(t, client, shell("tsk_kept", "echo kept"))
		_, err := client.StartProcess(t.Context(), wire.ProcessSpec{Name: "daemon",
			Command: []string{"sh", "-c", "echo last words; sleep 7777"}, Policy: "never"})
		require.NoError(t, err)
		eventually(t, func() bool {
			process, err := client.InspectProcess(t.Context(), "daemon")
			return err == nil && process.LogTail == "last words\n"
		}, "the log shows what was printed")
		died := make(chan error, 1)
		go func() {
			_, err := client.Run(context.Background(), shell("tsk_lost", "echo up; sleep 7778"), func(wire.Output) {
				killInit(t, b)
			})
			died <- err
		}()
		require.True(t, wire.HasCode(<-died, wire.CodeSandboxLost))
		_, err = b.Lookup(t.Context(), memberID)
		require.True(t, wire.HasCode(err, wire.CodeSandboxLost), "%v", err)
		process, err := b.LostProcess(memberID, "daemon")
		require.NoError(t, err)
		require.Equal(t, "failed", process.State)
		require.Equal(t, "last words\n", process.LogTail)
		kept, ok := b.StoredResult(memberID, "tsk_kept")
		require.True(t, ok)
		require.Equal(t, "kept\n", string(kept.Stdout))
		again := b.ensure(t)
		require.NotEqual(t, client.Epoch(), again.Epoch())
		require.NotContains(t, commands(t, b), "sleep 777", "what the dead init left was not removed")
	})
}

func killInit(t *testing.T, b bundle) {
	t.Helper()
	left, err := b.Residue(memberID)
	require.NoError(t, err)
	for _, process := range left.Processes {
		if strings.Contains(process.Command, "member-init") || strings.Contains(process.Command, "member-plain-init") {
			require.NoError(t, unix.Kill(process.PID, unix.SIGKILL))
			return
		}
	}
	t.Errorf("no init among %v", left.Processes)
	runtime.Goexit()
}

func commands(t *testing.T, b bundle) string {
	t.Helper()
	left, err := b.Residue(memberID)
	require.NoError(t, err)
	return fmt.Sprint(left.Processes)
}

func TestResidueFindsDaemonsAndTeardownLeavesNothing(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		script := `(setsid sleep 7781 >/dev/null 2>&1 &); setsid sh -c 'setsid env -i /bin/sleep 7782 >/dev/null 2>&1 & exit 0'
			trap '' TERM HUP INT; sh -c 'trap "" TERM HUP; while :; do sleep 7783; done' >/dev/null 2>&1 &
			echo data > $GPUAAS_MEMBER_ROOT/var/lib/left; mkdir -m 000 $GPUAAS_MEMBER_ROOT/var/lib/closed`
		require.Equal(t, 0, runs(t, client, shell("tsk_a", script)).ExitCode)
		_, err := client.StartProcess(t.Context(), wire.ProcessSpec{Name: "stubborn", Policy: "always",
			Command: []string{"sh", "-c", `trap "" TERM; while :; do sleep 7784; done`}, StopTimeoutMillis: 100})
		require.NoError(t, err)
		eventually(t, func() bool {
			found := commands(t, b)
			return strings.Contains(found, "7781") && strings.Contains(found, "7782") &&
				strings.Contains(found, "7783") &&
				strings.Contains(found, "7784")
		}, "residue shows every daemon")
		before, err := b.Residue(memberID)
		require.NoError(t, err)
		require.True(t, before.Sandbox)
		require.Contains(t, strings.Join(before.Names, "\n"), "var/lib/left")
		if b.Isolation().Mode == memberinit.ModeContainer {
			require.NotEmpty(t, before.Mounts)
			require.NotEmpty(t, before.Cgroups)
		}

		left, err := b.Teardown(t.Context(), memberID)
		require.NoError(t, err)
		require.True(t, left.Empty(), "%+v", left)
		require.NoDirExists(t, filepath.Join(b.dir, "members", memberID))
		for _, process := range before.Processes {
			stat, err := procfs.ReadStat(process.PID)
			require.True(t, err != nil || stat.Dead(), "process %v survived", process)
		}
		require.NotContains(t, strings.Join(procfs.MountInfo(0), "\n"), b.dir)
		// such as /memory/PARENT/ALLOCATION/MEMBER: the allocation's went with its last member
		for _, group := range before.Cgroups {
			require.NoDirExists(t, filepath.Dir(filepath.Join("/sys/fs/cgroup", group)))
		}
	})
}

func TestResidueOfAMemberNeverSeenIsEmpty(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	left, err := b.Residue("mem_neverseen")
	require.NoError(t, err)
	require.True(t, left.Empty())
	_, err = b.Residue("../../etc")
	require.True(t, wire.HasCode(err, wire.CodeSpecInvalid), "%v", err)
	_, err = b.Teardown(t.Context(), "mem_neverseen")
	require.NoError(t, err)
}

func TestSandboxOfAnotherInstanceIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	b.ensure(t)
	_, err := b.Ensure(t.Context(), sandbox.Member{ID: memberID, InstanceID: "ins_other"})
	require.True(t, wire.HasCode(err, wire.CodeSandboxForeign), "%v", err)
}

func TestSandboxWhoseRecordIsLostIsStillFoundAndReplaced(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		require.Equal(t, 0, runs(t, client, shell("tsk_a", "setsid sleep 7791 >/dev/null 2>&1 &")).ExitCode)
		eventually(t, func() bool { return strings.Contains(commands(t, b), "sleep 7791") }, "the daemon runs")
		require.NoError(t, os.Remove(filepath.Join(b.dir, "members", memberID, "sandbox.json")))
		require.Contains(t, commands(t, b), "member-init")
		require.Contains(t, commands(t, b), "sleep 7791")
		again := b.ensure(t)
		require.NotEqual(t, client.Epoch(), again.Epoch())
		require.NotContains(t, commands(t, b), "sleep 7791")
	})
}

// An overlay stacked on the member's own would fail; on the scratch it works, and it goes with the member.
func TestScratchTakesAnOverlayAndGoesWithTheMember(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	if b.Isolation().Mode != memberinit.ModeContainer {
		t.Skip("containers need root")
	}
	client := b.nesting(t)
	result := runs(t, client, shell("tsk_a", `set -e
cd /scratch; mkdir low up work all; echo deep > low/file
mount -t overlay -o lowerdir=low,upperdir=up,workdir=work none all
cat all/file; rm all/file; test ! -e all/file
ls -A /sys/fs/cgroup | wc -l; mkdir /sys/fs/cgroup/x; rmdir /sys/fs/cgroup/x`))
	require.Zero(t, result.ExitCode, "%s", result.Stderr)
	require.Equal(t, "deep\n0\n", string(result.Stdout))
	found, err := b.Residue(memberID)
	require.NoError(t, err)
	require.Contains(t, found.Names, filepath.Join("fs", "scratch", "low", "file"))
	left, err := b.Teardown(t.Context(), memberID)
	require.NoError(t, err)
	require.True(t, left.Empty(), "teardown left %+v", left)
}
