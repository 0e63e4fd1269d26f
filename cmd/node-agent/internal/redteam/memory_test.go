package redteam

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
)

func TestAMemberThatEatsMemoryIsKilledAloneAndCounted(t *testing.T) {
	t.Parallel()
	g := newGround(t, oci.Service)
	eat := func() { require.NotZero(t, g.run(g.attacker, "tail", "/dev/zero").ExitCode) }
	require.Empty(t, g.manager.MemoryKills(10))
	eat()
	seen := g.manager.MemoryKills(10)
	require.Equal(t, []sandbox.MemoryKills{{MemberID: attackerID, Epoch: g.attacker.Epoch(), Kills: 1}}, seen,
		"and nothing of the victim")
	require.Zero(t, g.run(g.victim, "true").ExitCode)
	require.Zero(t, g.run(g.attacker, "true").ExitCode, "the member goes on")
	require.Equal(t, seen, g.manager.MemoryKills(10), "what the platform has not confirmed is reported again")
	g.manager.KillsReported(seen)
	require.Empty(t, g.manager.MemoryKills(10))
	eat()
	left, err := g.manager.Teardown(t.Context(), attackerID)
	require.NoError(t, err)
	require.True(t, left.Empty())
	last := g.manager.MemoryKills(10)
	require.Equal(t, []sandbox.MemoryKills{{MemberID: attackerID, Epoch: g.attacker.Epoch(), Kills: 2}}, last,
		"its end hides nothing")
	g.manager.KillsReported(last)
	require.Empty(t, g.manager.MemoryKills(10))
}
