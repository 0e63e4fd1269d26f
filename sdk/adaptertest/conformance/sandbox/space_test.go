package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
)

// enclosed is a rig whose members have namespaces.
func enclosed(t *testing.T) rig {
	t.Helper()
	if err := sandbox.Enclosable(); err != nil {
		t.Skip(err)
	}
	r := newRig(t)
	r.Namespaces = true
	return r
}

func TestAMemberWithNamespacesHasARootOfItsOwn(t *testing.T) {
	t.Parallel()
	r := enclosed(t)
	const path = "/etc/of-this-member"
	out := r.do(adapter.TaskWriteFile, adapter.WriteFile{Path: path, Content: "hello"})
	require.Equal(t, adapter.TaskSucceeded, out.State, out.Message)
	out = r.do(adapter.TaskRun,
		shell(`cat "$R`+path+`"; echo " root=$R user=$(id -u) first=$(cat /proc/1/comm)"; exit 3`))
	require.Equal(t, "hello root= user=0 first=sh\n", out.Stdout)
	require.Equal(t, 3, *out.ExitCode)
	_, err := os.Stat(path)
	require.ErrorIs(t, err, os.ErrNotExist, "the machine has no such file")
	other := shell(`id -un; pwd`)
	other.User, other.WorkDir = "nobody", "/usr"
	require.Equal(t, "nobody\n/usr\n", r.do(adapter.TaskRun, other).Stdout)
}

func TestAMemberWithNamespacesLeavesNothing(t *testing.T) {
	t.Parallel()
	r := enclosed(t)
	out := r.do(adapter.TaskRun, shell(`echo x > /var/left; setsid env -i sleep 600 > /dev/null 2>&1 &`))
	require.Equal(t, adapter.TaskSucceeded, out.State, out.Message)
	var left adapter.Residue
	require.Eventually(t, func() bool { // the daemon has no command line while it becomes one
		var err error
		left, err = r.Residue("mem_1")
		require.NoError(t, err)
		return len(left.Processes) == 1 && strings.Contains(left.Processes[0].Command, "sleep 600")
	}, 10*time.Second, 10*time.Millisecond, "a daemon without the member's environment is found too")
	require.True(t, left.Sandbox)
	require.Equal(t, []string{"/var/left"}, left.Names)
	out = r.do(adapter.TaskTeardown, struct{}{})
	require.Equal(t, adapter.TaskSucceeded, out.State, out.Message)
	left, err := r.Residue("mem_1")
	require.NoError(t, err)
	require.True(t, left.Empty())
	_, err = os.Stat(filepath.Join(r.dir, "mem_1"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAProcessOfAMemberWithNamespacesIsStopped(t *testing.T) {
	t.Parallel()
	r := enclosed(t)
	start := adapter.StartProcess{Name: "web", Command: []string{"sleep", "600"}}
	require.Equal(t, "running", stateOf(t, r.do(adapter.TaskStartProcess, start)))
	require.Equal(t, "absent", stateOf(t, r.do(adapter.TaskStopProcess, adapter.StopProcess{Name: "web"})))
	left, err := r.Residue("mem_1")
	require.NoError(t, err)
	require.Empty(t, left.Processes)
}
