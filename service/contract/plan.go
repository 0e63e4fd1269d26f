package contract

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// planTimeout bounds a plan's answer, since a person waits for it.
const planTimeout = 5 * time.Second

// Plan is the request to an adapter to judge a change. The subject is the instance as it would be after it.
type Plan struct {
	Subject
	Kind    lifecycle.OperationKind
	Targets []ids.ID
	// Change is the change in the contract's JSON.
	Change json.RawMessage
	Force  bool
	// Choose asks which of the targets should leave; nil for a plan.
	Choose *adapter.Choose
}

// Plan asks an adapter to judge a change. An adapter that does not plan, cannot be reached or does not answer in time
// gets an unknown verdict with the reason; an error is the platform's own.
func (c *Calls) Plan(ctx context.Context, plan Plan) (*adapter.PlanAnswer, error) {
	of, err := c.show(ctx, plan.Subject, operation.LookKeys(plan.Adapter.NarrowCalls)...)
	if err != nil {
		return nil, err
	}
	targets := make([]string, len(plan.Targets))
	for i, id := range plan.Targets {
		targets[i] = string(id)
	}
	request := adapter.PlanRequest{
		Kind: adapter.Kind(plan.Kind.WireName()), Instance: of.instance, Members: of.members, Targets: targets,
		Change: plan.Change, Force: plan.Force, Choose: plan.Choose, CorrelationID: plan.CorrelationID,
		Platform: of.platform,
	}
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	answer, err := c.client.Plan(ctx, plan.target(), request, plan.trace())
	if err != nil {
		return unknown(err), nil
	}
	return &answer, nil
}

// unknown returns the verdict of an adapter that did not give one. A refusal for safety counts as a verdict: the change
// itself would be refused likewise.
func unknown(err error) *adapter.PlanAnswer {
	refusal := fault.From(faultOf(err))
	answer := &adapter.PlanAnswer{Verdict: adapter.VerdictUnknown, Message: refusal.Message, WorkLost: []adapter.Work{},
		Reasons: []adapter.PlanReason{{Code: string(refusal.Code), Message: refusal.Message}}}
	failed, _ := adapterclient.As(err)
	switch {
	case failed == nil:
	case failed.Kind == adapterclient.Unsupported:
		answer.Message = "adapter " + failed.Target.Name + " does not support plans"
		answer.Reasons = []adapter.PlanReason{{Code: adapter.CodePlansUnsupported, Message: answer.Message}}
	case failed.Kind == adapterclient.Rejected:
		answer.Verdict = adapter.VerdictUnsafe
	}
	return answer
}
