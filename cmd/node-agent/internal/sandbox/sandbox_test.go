package sandbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/rootfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const (
	memberID   = "mem_0000000000000000000000test"
	instanceID = "ins_0000000000000000000000test"
	patience   = 60 * time.Second
)

// testRoots is where versions of the curated root are kept from one run of tests to the next, those of rig/stack too,
// which deletes old ones.
const testRoots = "/var/cache/app-platform/member-roots"

var testRoot string

func TestMain(m *testing.M) {
	memberinit.Dispatch(os.Args)
	if os.Geteuid() == 0 {
		version, err := rootfs.Store{Dir: testRoots, Link: true}.Current()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		testRoot = version.Path // locked until this process ends
	}
	if len(os.Args) == 3 && os.Args[1] == agentPart {
		os.Exit(agentMain(os.Args[2]))
	}
	os.Exit(m.Run())
}

// bundle is one manager on a state directory of its own; what it started is torn down at the end.
type bundle struct {
	*sandbox.Manager
	dir string
}

func setup(t *testing.T, forceProcess bool) bundle {
	t.Helper()
	if os.Geteuid() != 0 {
		forceProcess = true
	}
	dir := t.TempDir()
	manager, err := sandbox.NewManager(t.Context(),
		sandbox.Options{StateDir: dir, ForceProcess: forceProcess, Root: testRoot, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() {
		left, err := manager.Teardown(context.Background(), memberID)
		require.NoError(t, err)
		require.True(t, left.Empty(), "teardown left %+v", left)
	})
	return bundle{Manager: manager, dir: dir}
}

// bothModes runs the test with containers, where root allows it, and with plain processes.
func bothModes(t *testing.T, test func(t *testing.T, b bundle)) {
	t.Helper()
	for _, mode := range []string{memberinit.ModeContainer, memberinit.ModeProcess} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			if mode == memberinit.ModeContainer && os.Geteuid() != 0 {
				t.Skip("containers need root")
			}
			b := setup(t, mode == memberinit.ModeProcess)
			require.Equal(t, mode, b.Isolation().Mode, b.Isolation().Reason)
			test(t, b)
		})
	}
}

func (b bundle) ensure(t *testing.T) *sandbox.Client {
	t.Helper()
	client, err := b.Ensure(t.Context(), sandbox.Member{ID: memberID, InstanceID: instanceID})
	require.NoError(t, err)
	return client
}

// nesting gives the member the profile for apps that run containers inside.
func (b bundle) nesting(t *testing.T) *sandbox.Client {
	t.Helper()
	member := sandbox.Member{ID: memberID, InstanceID: instanceID, Walls: sandbox.Walls{Profile: oci.Nesting}}
	client, err := b.Ensure(t.Context(), member)
	require.NoError(t, err)
	return client
}

func shell(key, script string) wire.Run {
	return wire.Run{Key: key, Fence: 1, Command: []string{"/bin/sh", "-c", script}, TimeoutMillis: 60_000}
}

func runs(t *testing.T, client *sandbox.Client, run wire.Run) wire.RunResult {
	t.Helper()
	result, err := client.Run(t.Context(), run, func(wire.Output) {})
	require.NoError(t, err)
	return result
}

func eventually(t *testing.T, condition func() bool, what string, args ...any) {
	t.Helper()
	require.Eventually(t, condition, patience, 10*time.Millisecond, fmt.Sprintf(what, args...))
}

func TestRunGivesExitCodeAndBothStreams(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		result := runs(t, b.ensure(t), shell("tsk_a", "echo out; echo err >&2; exit 3"))
		require.Equal(t, 3, result.ExitCode)
		require.Equal(t, "out\n", string(result.Stdout))
		require.Equal(t, "err\n", string(result.Stderr))
		require.False(t, result.Truncated)
	})
}

func TestRunHasStdinEnvironmentAndItsMember(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		run := shell("tsk_a", `cat; echo "$GREETING $GPUAAS_MEMBER_ID $GPUAAS_INSTANCE_ID"; env | wc -l`)
		run.Stdin, run.Env = []byte("typed\n"), []string{"GREETING=hello", "PATH=/bin:/usr/bin"}
		result := runs(t, b.ensure(t), run)
		require.True(t, strings.HasPrefix(string(result.Stdout), "typed\nhello "+memberID+" "+instanceID+"\n"),
			string(result.Stdout))
	})
}

func TestNamespaceMemberIsAloneAndCannotSeeTheAgentsState(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	b := setup(t, false)
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "credential"), []byte("secret"), 0o600))
	result := runs(t, b.ensure(t), shell("tsk_a", "test ! -e "+b.dir+
		" && echo hidden; ls /proc | grep -c '^[0-9]'; cat /proc/1/comm; touch /etc/of-member; ls -l /proc/1/fd/; "+
		"ls -l /proc/1/cwd/../../; cut -d' ' -f4,5 /proc/self/mountinfo"))
	require.Contains(t, string(result.Stdout), "hidden\n")
	require.NoFileExists(t, "/etc/of-member")
	require.Less(t, strings.Index(string(result.Stdout), "member-init")+1, len(result.Stdout))
	require.Contains(t, string(result.Stdout), "member-init")
}

func TestRunAsAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("another user needs root")
	}
	b := setup(t, false)
	run := shell("tsk_a", "id -un; echo $HOME")
	run.User = "nobody"
	result := runs(t, b.ensure(t), run)
	require.Equal(t, "nobody\n/nonexistent\n", string(result.Stdout))
	run = shell("tsk_b", "true")
	run.User = "no-such-user"
	_, err := b.ensure(t).Run(t.Context(), run, func(wire.Output) {})
	require.True(t, wire.HasCode(err, wire.CodeUserUnknown), "%v", err)
}

func TestMissingProgramIsNamed(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		_, err := b.ensure(t).Run(t.Context(), wire.Run{Key: "tsk_a", Command: []string{"no-such-program"},
			TimeoutMillis: 1000}, nil)
		require.True(t, wire.HasCode(err, wire.CodeStartFailed), "%v", err)
		require.ErrorContains(t, err, "no-such-program")
	})
}

func TestOutputIsCappedAndItsTailKept(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		var streamed int
		result, err := b.ensure(t).Run(t.Context(), shell("tsk_a", "head -c 3000000 /dev/zero | tr '\\0' x; echo end"),
			func(o wire.Output) {
				require.Equal(t, int64(streamed), o.Offset)
				streamed += len(o.Data)
			})
		require.NoError(t, err)
		require.Equal(t, wire.StreamCap, streamed)
		require.True(t, result.Truncated)
		require.Len(t, result.Stdout, wire.StreamCap)
		require.True(t, strings.HasSuffix(string(result.Stdout), "xend\n"))
	})
}

func TestTimeoutKillsGrandchildrenInSessionsOfTheirOwn(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		run := shell("tsk_a", "setsid sh -c 'setsid sleep 7771 & sleep 7772' & (env -i sleep 7773 &) ; sleep 7774")
		run.TimeoutMillis = 700
		result := runs(t, client, run)
		require.True(t, result.TimedOut)
		left, err := b.Residue(memberID)
		require.NoError(t, err)
		require.NotContains(t, fmt.Sprint(left.Processes), "sleep 777")
	})
}

func TestCancelKillsTheRun(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		result, err := client.Run(t.Context(), shell("tsk_a", "echo started; sleep 7775"), func(wire.Output) {
			require.NoError(t, client.Cancel(t.Context(), "tsk_a"))
		})
		require.NoError(t, err)
		require.True(t, result.Canceled)
	})
}

func TestSameKeyAttachesAndRunsOnce(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		run := shell("tsk_a", "echo once >> $GPUAAS_MEMBER_ROOT/var/log/count; wc -l < "+
			"$GPUAAS_MEMBER_ROOT/var/log/count")
		first, again := runs(t, client, run), runs(t, client, run)
		require.Equal(t, first, again)
		require.Equal(t, "1", strings.TrimSpace(string(again.Stdout)))

		stale := run
		stale.Fence = 0
		_, err := client.Run(t.Context(), stale, nil)
		require.True(t, wire.HasCode(err, wire.CodeStaleFence), "%v", err)

		higher := run
		higher.Fence = 2
		require.Equal(t, "2", strings.TrimSpace(string(runs(t, client, higher).Stdout)))

		require.NoError(t, client.Ack(t.Context(), "tsk_a"))
		higher.AttachOnly = true
		_, err = client.Run(t.Context(), higher, nil)
		require.True(t, wire.HasCode(err, wire.CodeUnknownRun), "%v", err)
	})
}

func TestHigherFenceReplacesTheRunThatGoesOn(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		started := make(chan struct{})
		old := make(chan wire.RunResult, 1)
		go func() {
			result, _ := client.Run(context.Background(), shell("tsk_a", "echo up; sleep 7776"), func(wire.Output) {
				close(started)
			})
			old <- result
		}()
		<-started
		newer := shell("tsk_a", "echo new")
		newer.Fence = 2
		require.Equal(t, "new\n", string(runs(t, client, newer).Stdout))
		require.True(t, (<-old).Canceled)
	})
}
