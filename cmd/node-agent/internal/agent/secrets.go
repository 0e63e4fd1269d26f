package agent

import (
	"context"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/pace"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/platform"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/client"
)

// redeem takes delivery of a runtime secret for a task, with the node's own credential. It repeats the call to a
// platform that does not answer until ctx ends; a refusal is final. Neither the value nor its box is logged or
// journalled.
func (a *Agent) redeem(ctx context.Context, id string) (sealed string, err error) {
	retry := pace.New(maxBackoff)
	for {
		sealed, err := a.client.Redeem(ctx, a.credentials, id)
		switch {
		case err == nil:
			return sealed, nil
		case client.CodeOf(err) == client.CodeSecretSpent:
			return "", wire.Errorf(wire.CodeSecretSpent,
				"the secret %s was delivered as often as it may be, has expired or was revoked", id)
		case platform.Permanent(err):
			return "", wire.Errorf(wire.CodeSecretUnknown, "the platform has no secret %s for this node", id)
		}
		a.log.DebugContext(ctx, "secret not delivered yet", "secret", id, "error", err)
		if err := pace.PauseOr(ctx, retry.Step(), a.credentials.renewed); err != nil {
			return "", err
		}
	}
}
