package loopback_test

import (
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/loopback"
)

func TestAnAddressCanBeListenedOnAgainAndAgain(t *testing.T) {
	t.Parallel()
	address, err := loopback.Address()
	require.NoError(t, err)
	for range 3 {
		listener, err := net.Listen("tcp", address)
		require.NoError(t, err)
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		require.NoError(t, listener.Close())
		require.NoError(t, conn.Close())
	}
}

func TestAnAddressThatIsHeldAWhileIsWaitedFor(t *testing.T) {
	t.Parallel()
	before, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	held, err := before.(*net.TCPListener).File() // as a forked process has it
	require.NoError(t, err)
	require.NoError(t, before.Close())
	_, err = net.Listen("tcp", before.Addr().String())
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	time.AfterFunc(20*time.Millisecond, func() { _ = held.Close() })
	again, err := loopback.Listen(before.Addr().String())
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func TestAddressesDoNotMeet(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 200 {
		address, err := loopback.Address()
		require.NoError(t, err)
		require.False(t, seen[address], address)
		seen[address] = true
	}
}

func TestThePortLiesBelowThoseOfOutgoingConnections(t *testing.T) {
	t.Parallel()
	address, err := loopback.AddressOn("127.0.0.1")
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	require.Less(t, number, 32_768)
}

func TestAHostThatIsNotHereIsRefused(t *testing.T) {
	t.Parallel()
	_, err := loopback.AddressOn("192.0.2.1")
	require.ErrorContains(t, err, "choose a port of 192.0.2.1")
}
