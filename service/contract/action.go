package contract

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/kit/posix"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Action is an app action on its way to the adapter.
type Action struct {
	Subject
	Name           string
	Input          json.RawMessage
	IdempotencyKey string
	// Reads marks an action of risk "read".
	Reads bool
	// ProjectID is the requester's project: the instance's own, or one that is attached to it.
	ProjectID ids.ID
	// Account is the requester's POSIX identity; nil where the app requires none.
	Account *posix.Identity
}

// keys are the keys of the action's token. One that only reads runs what the manifest names, and redeems no secret,
// once the adapter's calls are narrowed.
func (a Action) keys() []authz.Key {
	if a.Reads && a.Adapter.NarrowCalls {
		return operation.LookKeys(true)
	}
	return []authz.Key{authz.TaskRun, authz.TaskRead, authz.SecretRedeem}
}

// Invoke sends one app action and returns its output. Faults: INVALID_ARGUMENT where the app does not take the input,
// ADAPTER_REJECTED, ADAPTER_UNAVAILABLE, ADAPTER_INVALID, CONFLICT, DIAL_REFUSED.
func (c *Calls) Invoke(ctx context.Context, action Action) (json.RawMessage, error) {
	of, err := c.show(ctx, action.Subject, action.keys()...)
	if err != nil {
		return nil, err
	}
	request := adapter.ActionRequest{
		Input: action.Input, IdempotencyKey: action.IdempotencyKey, Instance: of.instance, Members: of.members,
		Platform:  of.platform,
		Requester: action.requester(),
	}
	result, err := c.client.Act(ctx, action.target(), action.Name, request, action.trace())
	if err != nil {
		return nil, faultOfAction(err)
	}
	return result.Output, nil
}

// requester returns the requester in the contract's types.
func (a Action) requester() adapter.Requester {
	who := adapter.Requester{
		ID: a.Requester.ID, Kind: lifecycle.Wire(a.Requester.Kind), ProjectID: string(a.ProjectID),
	}
	if a.Account != nil {
		who.Posix = &adapter.PosixIdentity{Name: a.Account.Name, UID: a.Account.UID, GID: a.Account.GID}
	}
	return who
}

// faultOfAction is faultOf where an input that the app does not take is the caller's to correct, at its place there.
func faultOfAction(err error) error {
	failed, ok := adapterclient.As(err)
	if !ok || failed.Kind != adapterclient.Rejected || failed.Body.Code != adapter.CodeInvalid {
		return faultOf(err)
	}
	path := "input"
	if strings.HasPrefix(failed.Body.Path, path+".") {
		path = failed.Body.Path
	}
	return fault.New(fault.InvalidArgument, "%s", failed.Reason()).At(path).Because(err)
}
