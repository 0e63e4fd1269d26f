package node

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// maxKills is how many members a heartbeat may report kills of.
const maxKills = 1_000

// MemoryKills is how many processes of a member the node's kernel has killed because the member had no memory left.
type MemoryKills struct {
	MemberID ids.ID
	// Since names the start of the member that the count began with; Kills never falls while it stays the same.
	Since string
	Kills int
}

func checkKills(in *check.Input, kills []MemoryKills) {
	whole(in, "input.memoryKills", len(kills), 0, maxKills)
	for i, one := range kills {
		path := fmt.Sprintf("input.memoryKills.%d", i)
		in.Text(path+".since", one.Since, 1, 64)
		whole(in, path+".kills", one.Kills, 1, 1<<31-1)
	}
}

func (k MemoryKills) member() ids.ID { return k.MemberID }

// tell appends an event for kills that are new. The same report again adds nothing.
func (k MemoryKills) tell(ctx context.Context, t *tx.Tx, of *resident) error {
	var before int
	if err := t.QueryRow(ctx, `SELECT coalesce(max((payload->>'kills')::int), 0) FROM app_instance_event
		WHERE instance_id = $1 AND member_id = $2
		AND type = $3 AND payload->>'since' = $4`, of.instance.ID, k.MemberID, string(lifecycle.EventMemberOutOfMemory),
		k.Since).Scan(&before); err != nil {
		return err
	}
	if k.Kills <= before {
		return nil
	}
	return event.Append(ctx, t, of.instance, event.Draft{
		Type: lifecycle.EventMemberOutOfMemory, MemberID: k.MemberID,
		Message: fmt.Sprintf("%s %d had no memory left: the kernel of its node killed %d of its processes",
			of.component, of.ordinal, k.Kills-before),
		Payload: map[string]any{"since": k.Since, "kills": k.Kills, "killed": k.Kills - before},
	})
}
