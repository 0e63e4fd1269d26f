package ownnet_test

import (
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/ownnet"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

func TestMain(m *testing.M) { os.Exit(ownnet.Run(m)) }

func TestAProgramHasANetworkOfItsOwn(t *testing.T) {
	t.Parallel()
	adaptertest.Require(t)
	mine, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	before, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", os.Getppid()))
	require.NoError(t, err)
	require.NotEqual(t, before, mine, "the program that started this one is in the machine's")
	devices, err := net.Interfaces()
	require.NoError(t, err)
	require.Len(t, devices, 1)
	require.Equal(t, "198.51.100.1", adaptertest.Address(t))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "198.51.100.1:0")
	require.NoError(t, err)
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, connection.Close())
	require.NoError(t, listener.Close())
}
