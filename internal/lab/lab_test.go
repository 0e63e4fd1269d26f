package lab_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/lab"
	"github.com/gpuaas/app-platform/internal/prereq"
	"github.com/gpuaas/app-platform/internal/supervise"
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
	require.Equal(t, "ok", run(t, a, "echo x >/dev/null && head -c1 /dev/urandom | wc -c >/dev/shm/n && mktemp >/run/t && echo ok"))
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

func TestNodesTalkToEachOtherAndNotToTheMachine(t *testing.T) {
	t.Parallel()
	n := network(t)
	a, b := node(t, n, lab.NodeConfig{Name: "a"}), node(t, n, lab.NodeConfig{Name: "b"})
	require.Contains(t, run(t, a, "ip -br link; ip route"), "10.77.0.0/24")
	require.Empty(t, run(t, a, "ip route show default"))

	outside, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer outside.Close()
	_, err = a.Exec(t.Context(), "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d", outside.Addr().(*net.TCPAddr).Port))
	require.ErrorContains(t, err, "Connection refused")

	serve(t, b, "hello from b")
	require.Equal(t, "hello from b", run(t, a, "bash -c 'exec 3<>/dev/tcp/"+b.Addr().String()+"/7000; cat <&3'"))
}

// serve answers every connection to port 7000 of the node with a line, by a perl program: the shells cannot listen.
func serve(t *testing.T, node *lab.Node, line string) {
	t.Helper()
	child, err := node.Start(supervise.Spec{Name: "server", Command: []string{"perl", "-MIO::Socket::INET", "-e",
		`my $s = IO::Socket::INET->new(Listen => 5, LocalPort => 7000, ReuseAddr => 1) or die $!; while (my $c = $s->accept) { print $c "` + line + `"; close $c }`}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = child.Stop() })
	require.Eventually(t, func() bool {
		_, err := node.Exec(t.Context(), "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/7000")
		return err == nil
	}, waitFor, tick)
}

func TestLabProcessListensAndDialsInsideTheSwitch(t *testing.T) {
	t.Parallel()
	n := network(t)
	a := node(t, n, lab.NodeConfig{Name: "a"})
	listener, err := n.Listen(":8443")
	require.NoError(t, err)
	defer listener.Close()
	require.Equal(t, "10.77.0.254:8443", listener.Addr().String())
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("platform\n"))
			_ = conn.Close()
		}
	}()
	require.Equal(t, "platform", run(t, a, "bash -c 'exec 3<>/dev/tcp/10.77.0.254/8443; cat <&3'"))

	serve(t, a, "node\n")
	conn, err := n.DialContext(t.Context(), "tcp", a.Addr().String()+":7000")
	require.NoError(t, err)
	defer conn.Close()
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "node\n", line)

	_, err = n.DialContext(t.Context(), "tcp", "localhost:7000")
	require.Error(t, err)
}

func TestListenerFileServesAChildProcess(t *testing.T) {
	t.Parallel()
	n := network(t)
	a := node(t, n, lab.NodeConfig{Name: "a"})
	file, addr, err := n.ListenFile(":0")
	require.NoError(t, err)
	child, err := supervise.Start(supervise.Spec{Name: "heir", ExtraFiles: []*os.File{file}, Command: []string{"perl", "-MIO::Socket::INET", "-e",
		`my $s = IO::Socket::INET->new_from_fd(3, "r+"); my $c = $s->accept; print $c "inherited"; close $c`}})
	require.NoError(t, err)
	require.NoError(t, file.Close())
	t.Cleanup(func() { _ = child.Stop() })
	port := addr.(*net.TCPAddr).Port
	require.Equal(t, "inherited", run(t, a, fmt.Sprintf("bash -c 'exec 3<>/dev/tcp/10.77.0.254/%d; cat <&3'", port)))
}

func TestCutNetworkSilencesANodeUntilRestored(t *testing.T) {
	t.Parallel()
	n := network(t)
	a := node(t, n, lab.NodeConfig{Name: "a"})
	serve(t, a, "alive\n")
	dial := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		conn, err := n.DialContext(ctx, "tcp", a.Addr().String()+":7000")
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	require.NoError(t, dial())
	require.NoError(t, a.CutNetwork(t.Context()))
	require.Error(t, dial())
	require.NoError(t, a.RestoreNetwork(t.Context()))
	require.Eventually(t, func() bool { return dial() == nil }, waitFor, tick)
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
	child, err := a.Start(supervise.Spec{Name: "agent", Command: []string{"sleep", "1000"}, Restart: supervise.Always, Backoff: time.Millisecond})
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

func TestPlainNodeEndsEverythingThatItsProgramsStarted(t *testing.T) {
	t.Parallel()
	plain, err := lab.NewPlain("local")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, plain.Kill()) })
	require.Equal(t, "127.0.0.1", plain.Addr().String())
	file := filepath.Join(t.TempDir(), "pid")
	run(t, plain, "setsid sh -c 'echo $$ > "+file+"; setsid sleep 999 & exec sleep 1000' &")
	require.Eventually(t, func() bool { data, err := os.ReadFile(file); return err == nil && len(data) > 1 }, waitFor, tick)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	daemon, err := strconv.Atoi(strings.TrimSpace(string(data)))
	require.NoError(t, err)
	require.True(t, running(daemon))
	require.ErrorContains(t, plain.CutNetwork(t.Context()), "no network of its own")
	require.NoError(t, plain.Kill())
	require.False(t, running(daemon))
}

// TestKilledLabLeavesOnlyAFolderThatSweepRemoves re-runs this test program as a lab that kills itself.
func TestKilledLabLeavesOnlyAFolderThatSweepRemoves(t *testing.T) {
	t.Parallel()
	const env = "LAB_TEST_REPORT"
	live := network(t) // says why where labs cannot be
	if path := os.Getenv(env); path != "" {
		a := node(t, live, lab.NodeConfig{Name: "a"})
		_, err := a.Start(supervise.Spec{Name: "agent", Command: []string{"sleep", "1000"}})
		require.NoError(t, err)
		plain, err := lab.NewPlain("local")
		require.NoError(t, err)
		run(t, plain, "setsid sleep 1000 &")
		require.NoError(t, os.WriteFile(path, []byte(fmt.Sprint(a.PID(), plain.PID(), stateDir(t, a))), 0o600))
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		select {}
	}
	path := filepath.Join(t.TempDir(), "report")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledLabLeavesOnlyAFolderThatSweepRemoves$")
	cmd.Env = append(os.Environ(), env+"="+path)
	require.ErrorContains(t, cmd.Run(), "signal: killed")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var nodeInit, plainInit int
	var dir string
	_, err = fmt.Sscan(string(data), &nodeInit, &plainInit, &dir)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !running(nodeInit) && !running(plainInit) }, waitFor, tick)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	require.NotContains(t, string(mounts), dir)

	survivor := node(t, live, lab.NodeConfig{Name: "survivor"})
	require.DirExists(t, dir)
	require.NoError(t, lab.Sweep())
	require.NoDirExists(t, dir)
	require.DirExists(t, stateDir(t, survivor), "a live lab is left alone")
	require.Equal(t, "survivor", run(t, survivor, "hostname"))
}

// stateDir is the folder of the node's lab: argument 1 of the node's init.
func stateDir(t *testing.T, node *lab.Node) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", node.PID()))
	require.NoError(t, err)
	return strings.Split(string(data), "\x00")[1]
}
