package agent_test

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func TestMemoryKillsComeWithTheHeartbeatUntilOneIsTaken(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("limits need root")
	}
	r := newRig(t, memberinit.ModeContainer)
	r.mu.Lock()
	r.refuse = func(operation string) bool { return operation == "NodeHeartbeat" }
	r.mu.Unlock()
	eats := shell("tsk_a", "tail /dev/zero")
	eats.Binding = &gql.MemberBinding{AllocationId: "alc_1", Profile: gql.MemberProfileService, MemoryMiB: new(64),
		Pids: 64}
	done := r.do(eats)
	require.Equal(t, "FAILED", done.State)
	r.mu.Lock()
	r.refuse = nil
	r.mu.Unlock()
	told := func() []gql.MemoryKillsInput {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Clone(r.kills)
	}
	r.eventually(func() bool { return len(told()) > 0 }, "a heartbeat reports it")
	require.Len(t, told(), 1)
	require.Equal(t, member, told()[0].MemberId)
	require.Equal(t, 1, told()[0].Kills)
	require.NotEmpty(t, told()[0].Since)
}
