package procfs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTrafficLeavesTheLoopbackOut(t *testing.T) {
	t.Parallel()
	received, sent, ok := traffic("Inter-| Receive | Transmit\n face |bytes\n" +
		"    lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n  eth0: 100 1 0 0 0 0 0 0 30 1 0 0 0 0 0 0\n  eth1:5 1 0 0 0 0 0 0 " +
		"6 1 0 0 0 0 0 0\n")
	require.True(t, ok)
	require.Equal(t, []uint64{105, 36}, []uint64{received, sent})
	_, _, ok = traffic("")
	require.False(t, ok)
}
