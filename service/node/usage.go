package node

import (
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/sdk/nodemetrics"
	"github.com/gpuaas/app-platform/service/kit/check"
)

// MemberUsage is what a member uses now.
type MemberUsage struct {
	MemberID ids.ID
	nodemetrics.Sample
}

const noteUsageSQL = `SELECT platform.note_usage($1, $2)`

func checkUsage(in *check.Input, usages []MemberUsage) {
	whole(in, "input.memberUsage", len(usages), 0, maxKills)
	for i := range usages {
		path := fmt.Sprintf("input.memberUsage.%d", i)
		whole(in, path+".gpus", usages[i].GPUs, 0, maxGPUs)
		if field := usages[i].Wrong(); field != "" {
			in.Bad(path+"."+field, "must be a number of at least 0, and a fraction at most 1")
		}
	}
}

// queueUsage notes what members use, where the agent has measured it.
func queueUsage(batch *pgx.Batch, usages []MemberUsage) {
	if usages == nil {
		return
	}
	members, samples := make([]ids.ID, len(usages)), make([][]byte, len(usages))
	for i := range usages {
		members[i] = usages[i].MemberID
		samples[i], _ = json.Marshal(&usages[i].Sample) // numbers that checkUsage has seen
	}
	batch.Queue(noteUsageSQL, members, samples)
}
