package streams

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/sdk/tunnel/tunneltest"
)

// ended is the connection of a command that has ended: it takes no input, and how the command ended is read once the
// second frame was refused, or the connection was closed.
type ended struct {
	net.Conn
	mu      sync.Mutex
	refused int
	once    sync.Once
	decided chan struct{}
}

func (e *ended) Write([]byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refused++; e.refused == 2 {
		e.once.Do(func() { close(e.decided) })
	}
	return 0, net.ErrClosed
}

func (e *ended) Read(into []byte) (int, error) {
	<-e.decided
	return e.Conn.Read(into)
}

func (e *ended) Close() error {
	err := e.Conn.Close()
	e.once.Do(func() { close(e.decided) })
	return err
}

// A short command has often ended before the end of its input gets to it.
func TestACommandThatEndsBeforeItsInputDoesStillHasItsExitCode(t *testing.T) {
	t.Parallel()
	platform, agent := tunneltest.Pair(t)
	member, initEnd := net.Pipe()
	go func() {
		_ = wire.Write(initEnd, wire.Response{Result: &wire.RunResult{ExitCode: 7}})
		_ = initEnd.Close()
	}()
	served := make(chan error, 1)
	go func() {
		served <- agent.Serve(t.Context(), func(_ context.Context, _ tunnel.Open, stream *tunnel.Stream) error {
			if err := stream.Granted(); err != nil {
				return err
			}
			return pass(stream, &ended{Conn: member, decided: make(chan struct{})})
		})
	}()
	stream, err := platform.Open(t.Context(), tunnel.Open{Kind: tunnel.KindExec})
	require.NoError(t, err)
	require.NoError(t, tunnel.WriteFrame(stream, tunnel.Input, []byte("unread")))
	require.NoError(t, tunnel.WriteFrame(stream, tunnel.InputEnd, nil))
	kind, carries, err := tunnel.ReadFrame(stream)
	require.NoError(t, err, "the connection ended before the command did")
	require.Equal(t, tunnel.Exit, kind)
	require.Equal(t, 7, tunnel.ReadExit(carries))
	require.NoError(t, platform.Close())
	require.Error(t, <-served)
}
