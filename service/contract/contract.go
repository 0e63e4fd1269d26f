// Package contract is the one place from which the platform calls an adapter while a caller waits: its description, app
// actions and plans. It translates rows into the adapter contract, signs, and issues each call a token of its own.
package contract

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/contract/wire"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// tokenLife is the lifetime of a call's token: longer than the platform waits for the answer.
const tokenLife = 2 * time.Minute

// Calls reaches adapters on behalf of requests.
type Calls struct {
	client     *adapterclient.Client
	ring       *token.Keyring
	graphQLURL string
}

// New returns calls through the client. Adapters find the public API at graphQLURL.
func New(client *adapterclient.Client, ring *token.Keyring, graphQLURL string) *Calls {
	return &Calls{client: client, ring: ring, graphQLURL: graphQLURL}
}

// Subject is the instance that a call is about, with its neighbours.
type Subject struct {
	Adapter  *db.Adapter
	Instance *db.Instance
	// Manifest is the version that the instance runs, or would run after the change.
	Manifest    *manifest.Manifest
	Members     []*db.Member
	Nodes       map[ids.ID]*db.ComputeNode
	Allocations map[ids.ID]*db.Allocation
	// CorrelationID ties the call to its request.
	CorrelationID string
	// Requester is who requested the change or the action.
	Requester authz.Ref
}

// shown is a subject in the contract's types, with access to the public API for this call.
type shown struct {
	instance adapter.Instance
	members  []adapter.Member
	platform adapter.Platform
}

// show translates a subject and issues a token with the keys, confined to the instance.
func (c *Calls) show(ctx context.Context, of Subject, keys ...authz.Key) (shown, error) {
	instance, err := wire.Instance(of.Instance)
	if err != nil {
		return shown{}, err
	}
	wire.Pinned(&instance, of.Manifest)
	issued, err := operation.IssueCallToken(ctx, c.ring, operation.Call{
		Instance: of.Instance.ID, Keys: keys, Life: tokenLife, For: of.Requester,
	}, time.Now())
	if err != nil {
		return shown{}, err
	}
	return shown{
		instance: instance, members: wire.Members(of.Instance, of.Members, of.Nodes, of.Allocations),
		platform: adapter.Platform{GraphQLURL: c.graphQLURL, Token: issued.Text, TokenExpiresAt: issued.ExpiresAt},
	}, nil
}

// target returns the address of the subject's adapter.
func (s Subject) target() adapterclient.Target {
	return adapterclient.Target{Name: s.Adapter.Name, URL: s.Adapter.URL, Authority: s.Adapter.Authority,
		Sandbox: s.Adapter.ProjectID != nil}
}

// trace ties a call to its request.
func (s Subject) trace() adapterclient.Trace {
	i := s.Instance
	return adapterclient.Trace{CorrelationID: s.CorrelationID,
		About: telemetry.Context(string(i.TenantID), string(i.ProjectID), i.AppSlug, string(i.ID))}
}

// Describe sends a signed request for an adapter's description, a JSON object. Faults: DIAL_REFUSED when the operator
// does not allow the address, ADAPTER_INSECURE, ADAPTER_UNAVAILABLE, ADAPTER_INVALID.
func (c *Calls) Describe(ctx context.Context, target adapterclient.Target) (json.RawMessage, error) {
	description, err := c.client.Describe(ctx, target)
	if err != nil {
		return nil, faultOf(err)
	}
	return json.Marshal(description)
}

// faultOf translates a failed call into the platform's codes, with the adapter's own text where it sent one.
func faultOf(err error) error {
	failed, ok := adapterclient.As(err)
	if !ok {
		return fault.New(fault.AdapterUnavailable, "the adapter did not answer").Because(err)
	}
	code := map[adapterclient.Kind]fault.Code{
		adapterclient.Unavailable: fault.AdapterUnavailable, adapterclient.Rejected: fault.AdapterRejected,
		adapterclient.Conflict: fault.Conflict, adapterclient.Missing: fault.AdapterRejected,
		adapterclient.Invalid: fault.AdapterInvalid, adapterclient.Forbidden: fault.DialRefused,
		adapterclient.Insecure: fault.AdapterInsecure,
	}[failed.Kind]
	if failed.Kind == adapterclient.Rejected && failed.Body.Code == adapter.CodeUnavailable {
		code = fault.AdapterUnavailable // it understood, and its app does not answer it: later it may
	}
	refusal := fault.New(code, "%s", failed.Reason()).Because(err)
	if failed.Body.Path != "" {
		refusal = refusal.At(failed.Body.Path)
	}
	return refusal
}
