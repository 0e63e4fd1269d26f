package oci

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAGroupIsRemovedOnceItsProcessesHaveLeft(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("cgroups are made by root")
	}
	groups, err := OpenCgroups("app-platform-test-" + strconv.Itoa(os.Getpid()))
	if err == nil {
		err = groups.Writable()
	}
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { groups.RemoveEmpty("") })
	const group = "member"
	require.NoError(t, groups.Bound(group, Limits{}))
	process := exec.Command("sleep", "600")
	require.NoError(t, process.Start())
	for _, h := range groups.roots {
		if h.has("memory") || h.has("cpu") {
			require.NoError(t, h.write(groups.at(group), "cgroup.procs", strconv.Itoa(process.Process.Pid)))
		}
	}
	removed := make(chan error, 1)
	go func() { removed <- groups.Remove(group) }()
	select {
	case err := <-removed:
		require.Fail(t, "it did not wait", "%v", err)
	case <-time.After(50 * time.Millisecond): // it waits: the longer, the surer, but no result depends on it
	}
	require.NoError(t, process.Process.Kill())
	_, err = process.Process.Wait()
	require.NoError(t, err)
	require.NoError(t, <-removed)
	require.Empty(t, groups.Left(group))
}
