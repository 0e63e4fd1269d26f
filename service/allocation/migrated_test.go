package allocation_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/ent/generated/db"
)

// statement is the part of a migration between two of its comments.
func statement(t *testing.T, file, from, to string) string {
	t.Helper()
	text, err := os.ReadFile("../../migrations/" + file)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), from)
	require.True(t, found)
	part, _, found := strings.Cut(rest, to)
	require.True(t, found)
	return "--" + part
}

func TestOldAllocationsAreGivenDevicesByTheMigration(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	node, _ := b.Node(4)
	b.SQL(`UPDATE compute_node SET cpus = 8, memory_mib = 1000 WHERE id = $1`, node.ID)
	first, second := b.got(b.slice("a", 1, 1))[0], b.got(b.slice("b", 1, 2))[0]
	other, _ := b.Node(2)
	whole := b.got(b.whole("c", 1))[0]
	require.Equal(t, other.ID, *whole.NodeID)
	b.SQL(`UPDATE allocation SET devices = NULL, memory_mib = NULL, cpu_millis = NULL`)
	require.Zero(t, b.Count("device_hold", ""))

	b.SQL(statement(t, "20261122190500_walls_of_members.sql", "-- Allocations from before identities",
		"-- Members of launchable apps"))
	require.Equal(t, []string{"unreported-0"}, uuids(b.stored(first)))
	require.Equal(t, []string{"unreported-1", "unreported-2"}, uuids(b.stored(second)))
	require.Equal(t, []string{"unreported-0", "unreported-1"}, uuids(b.stored(whole)))
	require.Equal(t, 5, b.Count("device_hold", ""))
	share := func(row *db.Allocation) []*int { return []*int{row.CPUMillis, row.MemoryMib} }
	require.Equal(t, []int{4000, 500}, []int{*share(b.stored(second))[0], *share(b.stored(second))[1]})
	require.Equal(t, []*int{nil, nil}, share(b.stored(whole)), "a whole node has no bound")
}
