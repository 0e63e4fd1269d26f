package network

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// listTries bounds how often a listing is repeated. Each takes well under a millisecond.
const listTries = 100

// whole repeats a listing of the kernel's that was changed while it was read, by a member that starts or ends beside
// it: what it returned may lack what is there.
func whole[T any](list func() ([]T, error)) (found []T, err error) {
	for range listTries {
		if found, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return found, err
		}
	}
	return nil, err
}
