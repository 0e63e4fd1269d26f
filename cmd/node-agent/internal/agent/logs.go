package agent

import (
	"cmp"
	"context"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/masks"
)

// openLogs opens what reads the members' lines.
func (a *Agent) openLogs() error {
	a.masks = masks.NewKeeper(a.options.StateDir, a.key)
	var err error
	a.logs, err = logs.New(logs.Options{
		StateDir: a.options.StateDir, Masks: a.masks, NodeBytes: cmp.Or(a.options.LogBytes, DefaultLogBytes),
		Log: a.log,
	})
	return err
}

// keepLast keeps the last lines of a member that is about to be removed, for its teardown's result.
func (a *Agent) keepLast(ctx context.Context, memberID string) {
	if err := a.logs.Keep(ctx, memberID); err != nil {
		a.log.WarnContext(ctx, "the last lines of the member are lost", "member_id", memberID, "error", err)
	}
}
