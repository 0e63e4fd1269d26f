package agent

import (
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// maxKills is how many counts of memory kills one heartbeat may bring.
const maxKills = 1_000

func killsInput(kills []sandbox.MemoryKills) (input []gql.MemoryKillsInput) {
	for _, one := range kills {
		input = append(input, gql.MemoryKillsInput{MemberId: one.MemberID, Since: one.Epoch, Kills: one.Kills})
	}
	return input
}
