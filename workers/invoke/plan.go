package invoke

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers/wire"
)

// planTimeout is how long an adapter may think about a plan while a person waits.
const planTimeout = 5 * time.Second

// Plan asks an adapter what a change would come to. One that does not plan, cannot be reached or does
// not answer in time has an unknown verdict, with the reason.
func (c *Calls) Plan(ctx context.Context, call change.Call) (*adapter.PlanAnswer, error) {
	request, err := c.plan(call)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	said, err := c.client.Plan(ctx, adapterclient.Target{Name: call.Adapter, URL: call.URL}, request, adapterclient.Trace{CorrelationID: call.CorrelationID})
	if err != nil {
		return unknown(err), nil
	}
	return &said, nil
}

func (c *Calls) plan(call change.Call) (adapter.PlanRequest, error) {
	shown, err := wire.Instance(call.Instance)
	if err != nil {
		return adapter.PlanRequest{}, err
	}
	wire.Pinned(&shown, call.Manifest)
	keys := authz.OperationKeys(authz.TaskRun, authz.TaskRead)
	issued, err := operation.IssueCallToken(c.ring, call.Instance.ID, keys, tokenLife, time.Now())
	if err != nil {
		return adapter.PlanRequest{}, err
	}
	targets := make([]string, len(call.Targets))
	for i, id := range call.Targets {
		targets[i] = string(id)
	}
	return adapter.PlanRequest{
		Kind: adapter.Kind(call.Kind.WireName()), Instance: shown, Members: wire.Members(call.Members, call.Nodes, call.Allocations),
		Targets: targets, Change: call.Change, Force: call.Force, CorrelationID: call.CorrelationID,
		Platform: adapter.Platform{GraphQLURL: c.graphQLURL, Token: issued.Text, TokenExpiresAt: issued.ExpiresAt},
	}, nil
}

// unknown is the verdict of an adapter that did not say one. A refusal for safety is as good as a
// verdict: the change itself would be refused likewise.
func unknown(err error) *adapter.PlanAnswer {
	refusal := fault.From(faultOf(err))
	said := &adapter.PlanAnswer{Verdict: adapter.VerdictUnknown, Message: refusal.Message, WorkLost: []adapter.Work{},
		Reasons: []adapter.PlanReason{{Code: string(refusal.Code), Message: refusal.Message}}}
	failed, _ := adapterclient.As(err)
	switch {
	case failed == nil:
	case failed.Kind == adapterclient.Unsupported:
		said.Message = "adapter " + failed.Target.Name + " does not plan"
		said.Reasons = []adapter.PlanReason{{Code: adapter.CodePlansUnsupported, Message: said.Message}}
	case failed.Kind == adapterclient.Rejected:
		said.Verdict = adapter.VerdictUnsafe
	}
	return said
}
