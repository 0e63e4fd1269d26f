package feed

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
)

func TestAFullDiskLeavesVersionsToGiveAndNeverGivesOneTwice(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	var stored uint64
	refuse := false
	f := New("epoch", 0, func(ceiling uint64) error {
		if refuse {
			return full
		}
		stored = ceiling
		return nil
	})
	require.NoError(t, f.Reserve())
	refuse = true
	require.ErrorIs(t, f.Reserve(), full)
	status := contract.Status{OperationID: "op_1"}
	given := 0
	for ; f.Put(status) == nil; given++ {
		require.Less(t, f.next, stored, "a version beyond what is stored is given again after a crash")
	}
	require.Greater(t, given, ceilingBlock/2)
	refuse = false
	require.NoError(t, f.Put(status))
	require.Less(t, f.next, stored)
}
