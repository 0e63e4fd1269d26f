package lab_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/supervise"
	"github.com/gpuaas/app-platform/rig/lab"
)

func TestNodesTalkToEachOtherAndNotToTheMachine(t *testing.T) {
	t.Parallel()
	n := network(t)
	a, b := node(t, n, lab.NodeConfig{Name: "a"}), node(t, n, lab.NodeConfig{Name: "b"})
	require.Contains(t, run(t, a, "ip -br link; ip route"), "10.77.0.0/24")
	require.Empty(t, run(t, a, "ip route show default"))

	outside, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer outside.Close()
	_, err = a.Exec(t.Context(), "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d",
		outside.Addr().(*net.TCPAddr).Port))
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
	child, err := supervise.Start(supervise.Spec{Name: "heir", ExtraFiles: []*os.File{file},
		Command: []string{"perl", "-MIO::Socket::INET", "-e",
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

func TestLabProcessServesANodeOnTheNodesOwnLoopback(t *testing.T) {
	t.Parallel()
	a := node(t, network(t), lab.NodeConfig{Name: "a"})
	listener, err := a.Listen("127.0.0.1:5000")
	require.NoError(t, err)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("registry"))
			_ = conn.Close()
		}
	}()
	require.Equal(t, "registry", run(t, a, "bash -c 'exec 3<>/dev/tcp/127.0.0.1/5000; cat <&3'"))
	require.NoError(t, a.Kill())
	_, err = listener.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = a.Listen("127.0.0.1:5001")
	require.Error(t, err)
}
