package network

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
)

func TestAListingThatWasChangedWhileItWasReadIsRepeated(t *testing.T) {
	t.Parallel()
	reads := 0
	list := func(interrupted int, end error) func() ([]string, error) {
		reads = 0
		return func() ([]string, error) {
			if reads++; reads <= interrupted {
				return []string{"half"}, netlink.ErrDumpInterrupted
			}
			return []string{"all"}, end
		}
	}
	found, err := whole(list(3, nil))
	require.NoError(t, err)
	require.Equal(t, []string{"all"}, found)
	require.Equal(t, 4, reads)
	broken := errors.New("broken")
	_, err = whole(list(0, broken))
	require.ErrorIs(t, err, broken)
	require.Equal(t, 1, reads)
	found, err = whole(list(listTries, nil))
	require.ErrorIs(t, err, netlink.ErrDumpInterrupted)
	require.Empty(t, found, "half a listing is none")
}
