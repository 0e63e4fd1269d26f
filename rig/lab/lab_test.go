package lab_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/prereq"
	"github.com/gpuaas/app-platform/internal/supervise"
	"github.com/gpuaas/app-platform/rig/lab"
)

const (
	waitFor = 15 * time.Second
	tick    = 10 * time.Millisecond
)

func TestMain(m *testing.M) {
	lab.MaybeRunInit()
	os.Exit(m.Run())
}

// supported probes the machine once for all tests.
var supported = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	if os.Geteuid() == 0 {
		if err := prereq.Ensure(ctx, prereq.Lab); err != nil {
			return err
		}
	}
	return lab.Supported(ctx)
})

// network makes a lab that ends with its test. As root a machine that cannot is a failure: these tests are the proof.
func network(t *testing.T) *lab.Network {
	t.Helper()
	if err := supported(); err != nil {
		if os.Geteuid() != 0 {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	n, err := lab.New(t.Context(), lab.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

func node(t *testing.T, n *lab.Network, cfg lab.NodeConfig) *lab.Node {
	t.Helper()
	node, err := n.AddNode(t.Context(), cfg)
	require.NoError(t, err)
	return node
}

func run(t *testing.T, node *lab.Node, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	defer cancel()
	out, err := node.Exec(ctx, "/bin/sh", "-c", script)
	require.NoError(t, err)
	return strings.TrimSpace(out)
}

func running(pid int) bool {
	_, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe") // gone or a zombie: no program
	return err == nil
}

func TestNodeIsAMachineOfItsOwn(t *testing.T) {
	t.Parallel()
	a := node(t, network(t), lab.NodeConfig{Name: "node-a"})
	require.Equal(t, "node-a", run(t, a, "hostname"))
	require.Equal(t, "10.77.0.1", a.Addr().String())
	require.Contains(t, run(t, a, "ip -4 -o addr show eth0"), "10.77.0.1/24")
	require.Contains(t, run(t, a, "getent hosts node-a"), "10.77.0.1")
	require.Equal(t, "1", run(t, a, "cat /proc/1/stat | cut -d' ' -f1"))
	require.Equal(t, "eth0 lo", run(t, a, "ls /sys/class/net | xargs"))
	require.Equal(t, "absent", run(t, a, "test -e /dev/vda -o -e /dev/sda && echo present || echo absent"))
	require.Equal(t, "ok", run(t, a,
		"echo x >/dev/null && head -c1 /dev/urandom | wc -c >/dev/shm/n && mktemp >/run/t && echo ok"))
	require.NotEqual(t, run(t, a, "cat /etc/machine-id"), "")
}

func TestWritesOfANodeStayThereAndVanishWithIt(t *testing.T) {
	t.Parallel()
	n := network(t)
	a, b := node(t, n, lab.NodeConfig{Name: "a"}), node(t, n, lab.NodeConfig{Name: "b"})
	path := "/etc/lab-test-" + filepath.Base(t.TempDir())
	require.Equal(t, "mine", run(t, a, "echo mine > "+path+"; cat "+path))
	require.NoFileExists(t, path)
	require.Equal(t, "no", run(t, b, "test -e "+path+" && echo yes || echo no"))
	require.NoError(t, a.Kill())
	again := node(t, n, lab.NodeConfig{Name: "a"})
	require.Equal(t, "no", run(t, again, "test -e "+path+" && echo yes || echo no"))
}

func TestNodeCannotWriteMoreThanItsBound(t *testing.T) {
	t.Parallel()
	a := node(t, network(t), lab.NodeConfig{Name: "small", Bytes: 2 << 20})
	_, err := a.Exec(t.Context(), "dd", "if=/dev/zero", "of=/var/big", "bs=1M", "count=8")
	require.ErrorContains(t, err, "No space left on device")
}

func TestMemberSandboxOnANodeHasAnOverlayRootOfItsOwn(t *testing.T) {
	t.Parallel()
	a := node(t, network(t), lab.NodeConfig{Name: "nested"})
	out := run(t, a, `
		set -e; echo node > /etc/layer
		mkdir -p /run/member; mount -t tmpfs -o size=16m tmpfs /run/member; cd /run/member; mkdir up wk root
		unshare --mount --pid --fork --ipc sh -ec '
			mount -t overlay overlay -o lowerdir=/,upperdir=up,workdir=wk root
			mount -t proc proc root/proc
			cd root; pivot_root . .; umount -l .; cd /
			cat /etc/layer; echo member > /etc/layer; cat /etc/layer
			echo $$'
		cat /etc/layer; cat /run/member/up/etc/layer`)
	require.Equal(t, "node\nmember\n1\nnode\nmember", out)
}

func TestKillingTheAgentLeavesTheNodeAndStartsTheAgentAgain(t *testing.T) {
	t.Parallel()
	a := node(t, network(t), lab.NodeConfig{Name: "a"})
	agent, err := a.Start(supervise.Spec{
		Name: "agent", Restart: supervise.Always, Backoff: time.Millisecond,
		// What the agent leaves behind in a session of its own lives on, as the members' inits do.
		Command: []string{"/bin/sh", "-c", "setsid sleep 4242 & exec sleep 1000"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = agent.Stop() })
	left := func() string {
		return run(t, a, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -cx 4242 || true")
	}
	require.Eventually(t, func() bool { return left() == "1" }, waitFor, tick)
	run(t, a, fmt.Sprintf("kill -KILL %d", agent.PID()))
	require.Eventually(t, func() bool { return agent.Starts() == 2 }, waitFor, tick)
	require.Eventually(t, func() bool { return left() == "2" }, waitFor, tick)
	require.Equal(t, "a", run(t, a, "hostname"))
	run(t, a, "kill -TERM 1; kill -INT 1") // the node's init does not mind
	require.Equal(t, "a", run(t, a, "hostname"))
}

func TestOrphansOnANodeAreReaped(t *testing.T) {
	t.Parallel()
	a := node(t, network(t), lab.NodeConfig{Name: "a"})
	run(t, a, "for i in 1 2 3 4 5; do (setsid sleep 0.05 &) ; done")
	require.Eventually(t, func() bool {
		return run(t, a, "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ' (sleep) ' || true") == "0"
	}, waitFor, tick)
}

func TestExitStatusAndOutputOfAProgramOnANodeAreTold(t *testing.T) {
	t.Parallel()
	a := node(t, network(t), lab.NodeConfig{Name: "a"})
	out, err := a.Exec(t.Context(), "sh", "-c", "echo before; exit 7")
	require.ErrorContains(t, err, "exit status 7")
	require.Equal(t, "before\n", out)
	_, err = a.Exec(t.Context(), "sh", "-c", "kill -9 $$")
	require.ErrorContains(t, err, "signal: killed")
	_, err = a.Exec(t.Context(), "no-such-program")
	require.ErrorContains(t, err, "executable file not found")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = a.Exec(ctx, "sleep", "1000")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestBindsAndHiddenFoldersShowOnlyWhatTheyShould(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(state, "journal"), []byte("old"), 0o644))
	hidden, err := os.MkdirTemp("/var", "lab-hidden")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(hidden) })
	require.NoError(t, os.WriteFile(filepath.Join(hidden, "secret"), nil, 0o600))

	a := node(t, network(t), lab.NodeConfig{
		Name: "a", Hide: []string{hidden, "/no/such/folder"},
		Binds: []lab.Bind{
			{Source: state, Target: "/var/lib/agent"},
			{Source: filepath.Join(state, "journal"), Target: "/opt/agent/read-only", ReadOnly: true},
		},
	})
	require.Equal(t, "old", run(t, a, "cat /var/lib/agent/journal /dev/null; echo new > /var/lib/agent/journal"))
	data, err := os.ReadFile(filepath.Join(state, "journal"))
	require.NoError(t, err)
	require.Equal(t, "new\n", string(data))
	require.Equal(t, "refused", run(t, a, "echo x 2>/dev/null > /opt/agent/read-only || echo refused"))
	require.Empty(t, run(t, a, "ls "+hidden))
}

func TestANodeShowsWhatWasWrittenOnItAndNothingElse(t *testing.T) {
	t.Parallel()
	a := node(t, network(t), lab.NodeConfig{Name: "a"})
	require.NotContains(t, run(t, a, "ls "+lab.Written), "usr")
	run(t, a, "mkdir -p /srv/deep/left")
	require.Contains(t, run(t, a, "find "+lab.Written), lab.Written+"/srv/deep/left")
	require.Equal(t, "refused", run(t, a, "rmdir "+lab.Written+"/srv/deep/left 2>/dev/null || echo refused"))
}

func TestBadNodeConfigurationsAreRefusedByField(t *testing.T) {
	t.Parallel()
	n := network(t)
	for want, cfg := range map[string]lab.NodeConfig{
		`Name "Not_A_Host"`:  {Name: "Not_A_Host"},
		"Binds:":             {Name: "a", Binds: []lab.Bind{{Source: "relative", Target: "/x"}}},
		`Hide: "/"`:          {Name: "a", Hide: []string{"/"}},
		"no such file or di": {Name: "a", Binds: []lab.Bind{{Source: "/no/such", Target: "/x"}}},
	} {
		_, err := n.AddNode(t.Context(), cfg)
		require.ErrorContains(t, err, want)
	}
	require.Empty(t, n.Nodes(), "a node that failed to boot is gone")
	require.Equal(t, "10.77.0.1", node(t, n, lab.NodeConfig{Name: "a"}).Addr().String(), "its address is free again")
}

func TestKilledNodeTakesItsProgramsAlong(t *testing.T) {
	t.Parallel()
	n := network(t)
	a := node(t, n, lab.NodeConfig{Name: "a"})
	child, err := a.Start(supervise.Spec{Name: "agent", Command: []string{"sleep", "1000"}, Restart: supervise.Always,
		Backoff: time.Millisecond})
	require.NoError(t, err)
	pid := a.PID()
	require.NoError(t, a.Kill())
	require.NoError(t, a.Kill())
	<-a.Done()
	require.False(t, running(pid))
	require.NoError(t, child.Stop())
	_, err = a.Exec(t.Context(), "true")
	require.ErrorIs(t, err, lab.ErrNodeGone)
	require.Empty(t, n.Nodes())
}
