package parts

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/contract/wire"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers/engine"
)

// planToken is the lifetime of the token of a plan's call.
const planToken = 2 * time.Minute

// Has reports whether the adapter has got the operation already.
func (w *Work) Has(ctx context.Context, c *engine.Context) (bool, error) {
	s, err := w.snapshot(ctx, c)
	if err != nil {
		return false, err
	}
	_, err = w.status(ctx, c, s.target)
	refused, ok := adapterclient.As(err)
	switch {
	case ok && refused.Kind == adapterclient.Missing:
		return false, nil
	case ok:
		return false, trouble(refused)
	}
	return err == nil, err
}

// AskPlan asks the adapter for its part of the operation's plan, by force or not. One that does not plan is unknown,
// and a refusal for safety is unsafe.
func (w *Work) AskPlan(ctx context.Context, c *engine.Context, forced bool) (operation.PlannedAnswer, error) {
	s, err := w.snapshot(ctx, c)
	if err != nil {
		return operation.PlannedAnswer{}, err
	}
	request, err := w.question(ctx, c, s, forced)
	if err != nil {
		return operation.PlannedAnswer{}, err
	}
	answer, err := call(ctx, w, c, s.target, func(ctx context.Context) (adapter.PlanAnswer, error) {
		return w.Client.Plan(ctx, s.target, request, c.Trace())
	})
	refused, ok := adapterclient.As(err)
	switch {
	case ok && refused.Kind == adapterclient.Unsupported:
		answer.Verdict = adapter.VerdictUnknown
	case ok && refused.Kind == adapterclient.Rejected:
		answer.Verdict = adapter.VerdictUnsafe
	case ok:
		return operation.PlannedAnswer{}, trouble(refused)
	case err != nil:
		return operation.PlannedAnswer{}, err
	}
	return *operation.PlannedOf(&answer), nil
}

// question is the plan's question, about the operation as it was accepted.
func (w *Work) question(
	ctx context.Context, c *engine.Context, s *Snapshot, forced bool,
) (adapter.PlanRequest, error) {
	op := c.Op.Operation
	instance, err := w.led(ctx, c, s)
	if err != nil {
		return adapter.PlanRequest{}, err
	}
	change, err := changeOf(op)
	if err != nil {
		return adapter.PlanRequest{}, err
	}
	access, err := operation.IssueCallToken(ctx, w.Keys, operation.Call{
		Instance: s.instance.ID, Keys: operation.LookKeys(s.narrow), Life: planToken,
		For: authz.Ref{Kind: op.RequesterKind, ID: string(op.RequesterID), Name: op.RequesterName},
	}, c.Now())
	if err != nil {
		return adapter.PlanRequest{}, err
	}
	request := adapter.PlanRequest{
		Kind: adapter.Kind(op.Kind.WireName()), Instance: instance,
		Members: wire.Members(s.instance, s.Members, s.nodes, s.allocations),
		Targets: texts(op.Targets), Change: change, Force: forced, CorrelationID: op.CorrelationID,
		Platform: adapter.Platform{GraphQLURL: w.GraphQLURL, Token: access.Text, TokenExpiresAt: access.ExpiresAt},
	}
	if op.Kind == lifecycle.MembersAdd { // a plan names no members that do not exist yet
		request.Targets = nil
	}
	return request, nil
}
