package operation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// A client that keeps objects by type and id must not take one piece of work for another.
func TestEveryPieceOfWorkHasAnIDOfItsOwnThatStays(t *testing.T) {
	t.Parallel()
	list := []adapter.Work{
		{Kind: "job", ID: "7", MemberID: "mem_1"}, {Kind: "job", ID: "7", MemberID: "mem_2"},
		{Kind: "step", ID: "7", MemberID: "mem_1"},
		{Kind: "job"}, {Kind: "job"}, {Kind: "job", ID: "a/b"}, {Kind: "job/a", ID: "b"}, {Kind: "job", ID: "#2"},
	}
	seen := map[string]bool{}
	for _, instance := range []string{"ins_1", "ins_2"} {
		for i, work := range operation.WorkOf(ids.ID(instance), list) {
			require.NotEmpty(t, work.ID)
			require.False(t, seen[work.ID], "%s twice", work.ID)
			seen[work.ID] = true
			require.Equal(t, list[i].ID, work.WorkID)
		}
	}
	require.Equal(t, operation.WorkOf("ins_1", list), operation.WorkOf("ins_1", list))
}
