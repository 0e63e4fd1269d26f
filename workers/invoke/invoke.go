// Package invoke passes the calls of requests on to adapters: descriptions at registration and app
// actions. It speaks the adapter contract for services that know only their own interfaces.
package invoke

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers/wire"
)

// tokenLife is how long an action's token lasts: longer than the platform waits for the answer.
const tokenLife = 2 * time.Minute

// Calls reaches adapters on behalf of requests.
type Calls struct {
	client     *adapterclient.Client
	ring       *token.Keyring
	graphQLURL string
}

// New makes calls through the client; adapters are told to find the public API at graphQLURL.
func New(client *adapterclient.Client, ring *token.Keyring, graphQLURL string) *Calls {
	return &Calls{client: client, ring: ring, graphQLURL: graphQLURL}
}

// Describe asks an adapter to describe itself. Faults: DIAL_REFUSED, ADAPTER_UNAVAILABLE,
// ADAPTER_INVALID.
func (c *Calls) Describe(ctx context.Context, name, url string) (json.RawMessage, error) {
	description, err := c.client.Describe(ctx, adapterclient.Target{Name: name, URL: url})
	if err != nil {
		return nil, faultOf(err)
	}
	return json.Marshal(description)
}

// Invoke sends one app action with a token of its own, confined to the instance.
func (c *Calls) Invoke(ctx context.Context, call instance.ActionCall) (json.RawMessage, error) {
	request, err := c.request(call)
	if err != nil {
		return nil, err
	}
	result, err := c.client.Act(ctx, adapterclient.Target{Name: call.AdapterName, URL: call.AdapterURL}, call.Action, request,
		adapterclient.Trace{CorrelationID: call.CorrelationID})
	if err != nil {
		return nil, faultOf(err)
	}
	return result.Output, nil
}

func (c *Calls) request(call instance.ActionCall) (adapter.ActionRequest, error) {
	shown, err := wire.Instance(call.Instance)
	if err != nil {
		return adapter.ActionRequest{}, err
	}
	wire.Pinned(&shown, call.Manifest)
	keys := authz.OperationKeys(authz.TaskRun, authz.TaskRead, authz.SecretRedeem)
	issued, err := operation.IssueCallToken(c.ring, call.Instance.ID, keys, tokenLife, time.Now())
	if err != nil {
		return adapter.ActionRequest{}, err
	}
	return adapter.ActionRequest{
		Input: call.Input, IdempotencyKey: call.IdempotencyKey,
		Requester: adapter.Requester{ID: call.Requester.ID, Kind: lifecycle.Wire(call.Requester.Kind), ProjectID: string(call.ProjectID)},
		Instance:  shown, Members: wire.Members(call.Members, call.Nodes, call.Allocations),
		Platform: adapter.Platform{GraphQLURL: c.graphQLURL, Token: issued.Text, TokenExpiresAt: issued.ExpiresAt},
	}, nil
}

// faultOf spells a failed call in the platform's catalogue, with the adapter's own words where it
// had any.
func faultOf(err error) error {
	failed, ok := adapterclient.As(err)
	if !ok {
		return fault.New(fault.AdapterUnavailable, "the adapter did not answer").Because(err)
	}
	code := map[adapterclient.Kind]fault.Code{
		adapterclient.Unavailable: fault.AdapterUnavailable, adapterclient.Rejected: fault.AdapterRejected,
		adapterclient.Conflict: fault.Conflict, adapterclient.Missing: fault.AdapterRejected,
		adapterclient.Invalid: fault.AdapterInvalid, adapterclient.Forbidden: fault.DialRefused,
	}[failed.Kind]
	refusal := fault.New(code, "%s", failed.Reason()).Because(err)
	if failed.Body.Path != "" {
		refusal = refusal.At(failed.Body.Path)
	}
	return refusal
}
