package sandbox_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logfile"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

func daemon(name, script, policy string) wire.ProcessSpec {
	return wire.ProcessSpec{Name: name, Command: []string{"sh", "-c", script}, Policy: policy, BackoffMillis: 20,
		StopTimeoutMillis: 5000}
}

func inspect(t *testing.T, client *sandbox.Client, name string) wire.Process {
	t.Helper()
	process, err := client.InspectProcess(t.Context(), name)
	require.NoError(t, err)
	return process
}

func start(t *testing.T, client *sandbox.Client, spec wire.ProcessSpec) wire.Process {
	t.Helper()
	process, err := client.StartProcess(t.Context(), spec)
	require.NoError(t, err)
	return process
}

func TestProcessIsStartedAgainWhenItIsKilled(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		first := start(t, client, daemon("d", "exec sleep 7701", "on_failure"))
		require.Equal(t, "running", first.State)
		require.Equal(t, 0, runs(t, client, shell("tsk_kill", fmt.Sprintf("kill -9 %d", first.PID))).ExitCode)
		eventually(t, func() bool {
			again := inspect(t, client, "d")
			return again.State == "running" && again.Restarts == 1 && again.PID != first.PID
		}, "it runs again under another number")
	})
}

func TestProcessThatKeepsFailingStopsAtItsBound(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		spec := daemon("d", "echo attempt; exit 7", "on_failure")
		spec.MaxRestarts = 2
		start(t, client, spec)
		eventually(t, func() bool {
			p := inspect(t, client, "d")
			return p.State == "failed" && p.Restarts == 2 && p.ExitCode != nil && *p.ExitCode == 7 &&
				strings.Count(p.LogTail, "attempt") == 3
		}, "it fails for good after two restarts")
	})
}

func TestPolicyDecidesOnRestart(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		start(t, client, daemon("never", "exit 3", "never"))
		start(t, client, daemon("good", "exit 0", "on_failure"))
		start(t, client, daemon("always", "exit 0", "always"))
		eventually(t, func() bool { return inspect(t, client, "never").State == "failed" }, "a failure ends it")
		eventually(t, func() bool { return inspect(t, client, "good").State == "exited" }, "success ends it")
		eventually(t, func() bool { return inspect(t, client, "always").Restarts >= 2 }, "it is started for ever")
		require.Zero(t, inspect(t, client, "never").Restarts)
		require.Zero(t, inspect(t, client, "good").Restarts)
	})
}

func TestSameSpecificationChangesNothingAndAnotherIsRefused(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		spec := daemon("d", "exec sleep 7702", "always")
		first, again := start(t, client, spec), start(t, client, spec)
		require.Equal(t, first.PID, again.PID)
		other := daemon("d", "exec sleep 7703", "always")
		_, err := client.StartProcess(t.Context(), other)
		require.True(t, wire.HasCode(err, wire.CodeProcessDiffers), "%v", err)
		stopped, err := client.StopProcess(t.Context(), "d")
		require.NoError(t, err)
		require.Equal(t, "exited", stopped.State)
		require.Equal(t, "running", start(t, client, other).State)
	})
}

func TestStopSignalIsSentAndStubbornProcessesAreKilled(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		polite := daemon("polite", "trap 'echo asked; exit 0' USR1; echo up; while :; do sleep 0.05; done", "always")
		polite.StopSignal = "USR1"
		start(t, client, polite)
		stubborn := daemon("stubborn", "trap '' TERM; echo up; while :; do sleep 0.05; done", "always")
		stubborn.StopTimeoutMillis = 200
		start(t, client, stubborn)
		for _, name := range []string{"polite", "stubborn"} {
			eventually(t, func() bool { return inspect(t, client, name).LogTail == "up\n" }, "%s is up", name)
		}
		stopped, err := client.StopProcess(t.Context(), "polite")
		require.NoError(t, err)
		require.Equal(t, 0, *stopped.ExitCode)
		eventually(t, func() bool { return strings.Contains(inspect(t, client, "polite").LogTail, "\nasked\n") },
			"its last words are kept")
		stopped, err = client.StopProcess(t.Context(), "stubborn")
		require.NoError(t, err)
		require.Equal(t, 137, *stopped.ExitCode)
		absent, err := client.StopProcess(t.Context(), "never-seen")
		require.NoError(t, err)
		require.Equal(t, "absent", absent.State)
	})
}

func TestLogOfAProcessIsBounded(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		start(t, client, daemon("loud", "head -c 12000000 /dev/zero | tr '\\0' x; echo; echo end", "never"))
		eventually(t, func() bool {
			p := inspect(t, client, "loud")
			return p.State == "exited" && strings.HasSuffix(p.LogTail, "x\nend\n")
		}, "it ends")
		require.LessOrEqual(t, len(inspect(t, client, "loud").LogTail), 16<<10)
		var total int64
		logs, err := filepath.Glob(filepath.Join(b.dir, "members", memberID, "state", "logs", "loud", "*.log"))
		require.NoError(t, err)
		for _, log := range logs {
			info, err := os.Stat(log)
			require.NoError(t, err)
			total += info.Size()
		}
		require.LessOrEqual(t, total, int64(logfile.DefaultBound))
	})
}

func TestSupervisedProcessSurvivesItsAgentsConnection(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		first := start(t, b.ensure(t), daemon("d", "exec sleep 7704", "always"))
		other, err := sandbox.NewManager(t.Context(), sandbox.Options{StateDir: b.dir,
			ForceProcess: b.Isolation().Mode == memberinit.ModeProcess, Root: testRoot,
			Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		client, err := other.Lookup(t.Context(), memberID)
		require.NoError(t, err)
		require.Equal(t, first.PID, inspect(t, client, "d").PID)
	})
}

func TestFileIsWrittenWholeWithModeAndOwner(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		file := wire.File{Path: "/srv/new/dir/file", Mode: 0o640, Content: []byte("content"), MakeDirs: true}
		if os.Geteuid() == 0 {
			file.Owner = "nobody:daemon"
		}
		require.NoError(t, client.WriteFile(t.Context(), file))
		want := "640 nobody daemon content"
		script := "cd " + rootOf + "/srv/new/dir && stat -c '%a %U %G' file | tr '\\n' ' ' && cat file && ls -A | wc -l"
		got := string(runs(t, client, shell("tsk_a", script)).Stdout)
		if file.Owner != "" {
			require.Equal(t, want+"1\n", got)
		} else {
			require.True(t, strings.HasPrefix(got, "640 "), got)
		}
		file.MakeDirs, file.Path = false, "/srv/missing/file"
		err := client.WriteFile(t.Context(), file)
		require.True(t, wire.HasCode(err, wire.CodePathInvalid), "%v", err)
		for _, path := range []string{"relative", "/", "/srv/", ""} {
			err := client.WriteFile(t.Context(), wire.File{Path: path, Mode: 0o600})
			require.True(t, wire.HasCode(err, wire.CodePathInvalid), "%q: %v", path, err)
		}
	})
}

const rootOf = "$GPUAAS_MEMBER_ROOT"

func TestLinksDoNotLeadAWriteOutOfTheMember(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		outside := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(outside, "target"), []byte("untouched"), 0o600))
		script := "cd " + rootOf + "/var && ln -s " + outside +
			" abs && ln -s ../../../../../../../../../.." + outside +
			" rel && ln -s " + outside + "/target last"
		require.Equal(t, 0, runs(t, client, shell("tsk_a", script)).ExitCode)
		for _, path := range []string{"/var/abs/file", "/var/rel/file", "/var/../../.." + outside + "/file"} {
			_ = client.WriteFile(t.Context(), wire.File{Path: path, Mode: 0o600, Content: []byte("x"), MakeDirs: true})
			require.NoFileExists(t, filepath.Join(outside, "file"), path)
		}
		require.NoError(t, client.WriteFile(t.Context(), wire.File{Path: "/var/last", Mode: 0o600,
			Content: []byte("x")}))
		raw, err := os.ReadFile(filepath.Join(outside, "target"))
		require.NoError(t, err)
		require.Equal(t, "untouched", string(raw), "the link was followed")
	})
}

func TestContainerMemberCannotReachTheKernelOrOtherProcesses(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	b := setup(t, false)
	script := `grep CapBnd /proc/self/status; grep NoNewPrivs /proc/self/status; grep ^Seccomp: /proc/self/status; ls /dev; kill -9 1; echo alive
test -e /proc/1/cmdline; (echo x > /proc/sys/kernel/core_pattern) 2>&1; mknod /scratch/d b 7 7 2>&1; mount -t tmpfs none /mnt 2>&1; cut -d' ' -f1-99 /proc/self/uid_map`
	result := runs(t, b.ensure(t), shell("tsk_a", script))
	out := string(result.Stdout)
	require.Contains(t, out, "alive\n")
	require.NotContains(t, out, "vda")
	require.Contains(t, out, "NoNewPrivs:\t1")
	require.Contains(t, out, "Seccomp:\t2")
	bounding, err := strconv.ParseUint(strings.Fields(out)[1], 16, 64)
	require.NoError(t, err)
	for _, capability := range []int{unix.CAP_SYS_ADMIN, unix.CAP_SYS_MODULE, unix.CAP_SYS_TIME, unix.CAP_SYS_RAWIO,
		unix.CAP_NET_RAW, unix.CAP_MKNOD} {
		require.Zero(t, bounding&(1<<capability), "capability %d", capability)
	}
	require.NotZero(t, bounding&(1<<unix.CAP_NET_BIND_SERVICE))
	for _, refused := range []string{"core_pattern", "mknod:", "mount:"} {
		require.Contains(t, out, refused, "what must not work said so")
	}
	require.Regexp(t, `(?m)^\s+0\s+\d+\s+65536$`, out)
}

func TestMembersStartSideBySideQuickly(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	began := time.Now()
	ids := []string{"mem_side1", "mem_side2", "mem_side3", "mem_side4"}
	done := make(chan error, len(ids))
	for _, id := range ids {
		go func() {
			_, err := b.Ensure(t.Context(), sandbox.Member{ID: id, InstanceID: instanceID})
			done <- err
		}()
	}
	for range ids {
		require.NoError(t, <-done)
	}
	t.Logf("%d members in %s", len(ids), time.Since(began))
	for _, id := range ids {
		left, err := b.Teardown(t.Context(), id)
		require.NoError(t, err)
		require.True(t, left.Empty())
	}
}

func TestProgramWrittenIntoTheMemberRunsByItsPath(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		script := wire.File{Path: "/srv/app/run", Mode: 0o755, Content: []byte("#!/bin/sh\necho ran $1 in $PWD\n"),
			MakeDirs: true}
		require.NoError(t, client.WriteFile(t.Context(), script))
		run := wire.Run{Key: "tsk_a", Command: []string{"/srv/app/run", "it"}, WorkDir: "/srv/app", TimeoutMillis: 5000}
		result := runs(t, client, run)
		require.True(t, strings.HasPrefix(string(result.Stdout), "ran it in /"), "%s%s", result.Stdout, result.Stderr)
		require.True(t, strings.HasSuffix(string(result.Stdout), "/srv/app\n"), "%s", result.Stdout)
	})
}
