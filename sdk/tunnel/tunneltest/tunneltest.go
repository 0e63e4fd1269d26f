// Package tunneltest connects both ends of a tunnel in a test.
package tunneltest

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/tunnel"
)

// Pair returns the platform's end of a tunnel, which opens streams, and the agent's, which serves them. Both end when
// one of them is closed.
func Pair(t testing.TB) (platform, agent *tunnel.Session) {
	t.Helper()
	here, there := net.Pipe()
	platform, err := tunnel.NewSession(here, true)
	require.NoError(t, err)
	agent, err = tunnel.NewSession(there, false)
	require.NoError(t, err)
	return platform, agent
}
