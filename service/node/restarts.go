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

// ProcessRestarts is how often a member's supervised process was restarted.
type ProcessRestarts struct {
	MemberID ids.ID
	// Since names the start of the process that the count began with; Restarts never falls while it stays the same.
	Since    string
	Process  string
	Restarts int
}

func checkRestarts(in *check.Input, restarts []ProcessRestarts) {
	whole(in, "input.processRestarts", len(restarts), 0, maxKills)
	for i, one := range restarts {
		path := fmt.Sprintf("input.processRestarts.%d", i)
		in.Text(path+".since", one.Since, 1, 64)
		in.Text(path+".process", one.Process, 1, 64)
		whole(in, path+".restarts", one.Restarts, 1, 1<<31-1)
	}
}

func (r ProcessRestarts) member() ids.ID { return r.MemberID }

// tell counts restarts that are new and appends an event for them. The same report again adds nothing. Agents fold the
// restarts of a process that keeps failing, so that each report is worth an event.
func (r ProcessRestarts) tell(ctx context.Context, t *tx.Tx, of *resident) error {
	var before int
	if err := t.QueryRow(ctx, `SELECT coalesce(max((payload->>'restarts')::int), 0) FROM app_instance_event
		WHERE instance_id = $1
		AND member_id = $2 AND type = $3 AND payload->>'since' = $4 AND payload->>'process' = $5`,
		of.instance.ID, r.MemberID, string(lifecycle.EventMemberRestarted), r.Since, r.Process).
		Scan(&before); err != nil {
		return err
	}
	fresh := r.Restarts - before
	if fresh <= 0 {
		return nil
	}
	if _, err := t.Exec(ctx, `UPDATE member SET restarts = restarts + $2, updated_at = $3
		WHERE id = $1`, r.MemberID, fresh,
		t.Now); err != nil {
		return err
	}
	return event.Append(ctx, t, of.instance, event.Draft{
		Type: lifecycle.EventMemberRestarted, MemberID: r.MemberID,
		Message: fmt.Sprintf("process %s of %s %d ended and was started again, %d times", r.Process, of.component,
			of.ordinal, fresh),
		Payload: map[string]any{"componentKey": of.component, "index": of.ordinal, "process": r.Process,
			"since": r.Since, "restarts": r.Restarts, "restarted": fresh},
	})
}
