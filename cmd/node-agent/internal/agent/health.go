package agent

import (
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/health"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// checker checks this node. GPUs that are declared and not there are not asked for.
func (a *Agent) checker() *health.Checker {
	gpus := a.inventory.Gpus
	if a.options.SimulatedGPUs {
		gpus = 0
	}
	return health.New(health.Options{
		StateDir: a.options.StateDir, Root: "/", GPUs: gpus, Folder: a.options.ChecksDir,
		Runtime: func() string {
			if now := a.sandboxes.Isolation(); now.Mode == "" {
				return now.Reason
			}
			return ""
		},
	})
}

// heard notes what the platform took with a heartbeat, and its time.
func (a *Agent) heard(reported []gql.NodeConditionInput, theirs, sent time.Time) {
	now := a.now()
	if reported != nil {
		a.health.Reported(reported, now)
	}
	if !theirs.IsZero() {
		a.health.Heard(theirs, sent, now)
	}
}
