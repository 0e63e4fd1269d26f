package agent

import (
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/health"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// checker returns what checks this node. It does not look for GPUs that are simulated.
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

// heard notes the conditions that the platform took with a heartbeat, and the platform's time.
func (a *Agent) heard(reported []gql.NodeConditionInput, theirs, sent time.Time) {
	now := a.now()
	if reported != nil {
		a.health.Reported(reported, now)
	}
	if !theirs.IsZero() {
		a.health.Heard(theirs, sent, now)
	}
}
