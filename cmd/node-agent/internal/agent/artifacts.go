package agent

import (
	"context"
	"errors"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/pace"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/platform"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// openDelivery opens the delivery of a task's artifact, with the node's own credential. It repeats the call to a
// platform that does not answer until ctx ends; a refusal is final. The token that comes back is neither logged nor
// journalled.
func (a *Agent) openDelivery(ctx context.Context, taskID string) (gql.ArtifactDelivery, error) {
	retry := pace.New(maxBackoff)
	for {
		delivery, err := a.client.OpenDelivery(ctx, a.credentials, taskID)
		switch {
		case err == nil:
			return delivery, nil
		case client.CodeOf(err) == client.CodeArtifactQuarantined:
			return delivery, wire.Errorf(wire.CodeArtifactQuarantined, "%v", err)
		case platform.Permanent(err):
			return delivery, wire.Errorf(wire.CodeArtifactUnavailable, "%v", err)
		}
		a.log.DebugContext(ctx, "delivery not opened yet", "task_id", taskID, "error", err)
		if cause := pace.PauseOr(ctx, retry.Step(), a.credentials.renewed); cause != nil {
			return delivery, errors.Join(cause, wire.Errorf(wire.CodeArtifactUnavailable, "%v", err))
		}
	}
}
