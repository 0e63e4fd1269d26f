package idrange_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/idrange"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

func TestMembersHaveRangesOfTheirOwnUntilTheyAreFreed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ranges, err := idrange.Open(dir, 0, 2)
	require.NoError(t, err)
	first, err := ranges.Take("mem_a")
	require.NoError(t, err)
	again, err := ranges.Take("mem_a")
	require.NoError(t, err)
	require.Equal(t, first, again)
	second, err := ranges.Take("mem_b")
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.GreaterOrEqual(t, first.First, uint32(idrange.DefaultFirst))

	_, err = ranges.Take("mem_c")
	require.True(t, wire.HasCode(err, wire.CodeMemberIDsExhausted), "%v", err)
	_, held := ranges.Of("mem_c")
	require.False(t, held, "a refusal takes nothing")

	reopened, err := idrange.Open(dir, 0, 2)
	require.NoError(t, err)
	kept, held := reopened.Of("mem_a")
	require.True(t, held, "who has what outlives the agent")
	require.Equal(t, first, kept)
	require.NoError(t, reopened.Free("mem_a"))
	freed, err := reopened.Take("mem_c")
	require.NoError(t, err)
	require.Equal(t, first, freed)
}

func TestRangesKeepOffTheNodesAccounts(t *testing.T) {
	t.Parallel()
	_, err := idrange.Open(t.TempDir(), 1000, 0)
	require.ErrorContains(t, err, "id-first: 1000 is below 65536")
}
