package cli

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheNullDeviceIsNobody(t *testing.T) {
	t.Parallel()
	descriptor, err := syscall.Open(os.DevNull, syscall.O_RDONLY, 0)
	require.NoError(t, err)
	null := os.NewFile(uintptr(descriptor), "/dev/stdin")
	t.Cleanup(func() { _ = null.Close() })
	require.False(t, isTerminal(null), "whatever the descriptor is called")
	if terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err == nil {
		t.Cleanup(func() { _ = terminal.Close() })
		require.True(t, isTerminal(terminal))
	}
}
