package authhttp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestANetworkThatOneCallerCanMoveInIsOneAddress(t *testing.T) {
	t.Parallel()
	l := newLimits()
	for i := range burst {
		require.Zero(t, l.wait("2001:db8::1"))
		l.failed(fmt.Sprintf("2001:db8::%x", i+1))
	}
	require.Positive(t, l.wait("2001:db8::ffff"))
	require.Zero(t, l.wait("2001:db8:0:1::1"))
	for range burst {
		l.failed("::ffff:192.0.2.1")
	}
	require.Positive(t, l.wait("192.0.2.1"))
	require.Zero(t, l.wait("192.0.2.2"))
}

func TestAFloodOfAddressesSharesOneBudgetAndBoundedMemory(t *testing.T) {
	t.Parallel()
	l := newLimits()
	for i := range maxAddresses + 2*burst {
		l.failed(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255))
	}
	require.Len(t, l.known, maxAddresses)
	require.Positive(t, l.wait("192.0.2.99"), "an address beyond the bound shares what is left")
	require.Zero(t, l.wait("10.0.0.7"), "a known one keeps its own")
}
