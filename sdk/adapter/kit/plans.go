package kit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/api"
	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
)

const (
	// maxPlan bounds a plan: the platform requests it while a person waits.
	maxPlan = 30 * time.Second
)

// PlanCall is the input and the means of a plan: the instance and its members, node tasks that change nothing,
// and the request.
type PlanCall struct {
	Call
	// Request is the operation to plan.
	Request contract.PlanRequest
}

// Targets returns the members the operation would act on.
func (p *PlanCall) Targets() []contract.Member {
	return contract.TargetsOf(p.Members, p.Request.Targets)
}

// Change decodes the desired change into out. One that cannot be read is a refusal.
func (p *PlanCall) Change(out any) error { return contract.DecodeChange(p.Request.Change, out) }

// asDispatch returns the plan as the operation that it would be, for the checks of whether one may begin.
func asDispatch(p contract.PlanRequest) contract.Dispatch {
	return contract.Dispatch{
		Kind: p.Kind, Attempt: 1, CorrelationID: p.CorrelationID, Instance: p.Instance, Members: p.Members,
		Targets: p.Targets, Change: p.Change, Force: p.Force, Platform: p.Platform,
	}
}

func (k *Kit) plan(ctx context.Context, r request) (answer, error) {
	var body contract.PlanRequest
	if err := r.decode(&body); err != nil {
		return answer{}, err
	}
	if err := body.Validate(); err != nil {
		return answer{}, err
	}
	app, ok := k.apps[body.Instance.App]
	if !ok || (body.Choose == nil && app.Plan == nil) || (body.Choose != nil && app.Leaving == nil) {
		return answer{}, contract.ErrorBody{Code: contract.CodePlansUnsupported,
			Message: "this adapter does not plan operations of the app"}
	}
	ctx, cancel := context.WithTimeout(ctx, maxPlan)
	defer cancel()
	said, err := k.planned(ctx, app, body, r)
	if err != nil {
		return answer{}, actionError(err)
	}
	return answer{http.StatusOK, said}, nil
}

// planned calls the author's function. What a dispatch would be refused for is not an error of a plan: it
// is the reason of its verdict.
func (k *Kit) planned(ctx context.Context, app *compiledApp, body contract.PlanRequest,
	r request) (contract.PlanAnswer, error) {
	log := r.log.With("instance", body.Instance.ID, "plan", body.Kind)
	call := &PlanCall{Request: body, Call: Call{
		Instance: body.Instance, Members: body.Members, Log: log,
		// Every plan reads the present state, so its tasks must be new ones.
		key:   "plan." + digest(time.Now().String(), body.Platform.Token),
		tasks: api.NewClient(once(body.Platform), r.Header.Get(contract.HeaderCorrelation), log),
	}}
	err := k.admit(ctx, asDispatch(body))
	var said contract.PlanAnswer
	switch {
	case err != nil:
	case body.Choose != nil:
		return choice(ctx, app, call)
	default:
		said, err = app.Plan(ctx, call)
	}
	var refusal unprocessable
	if errors.As(refused(err), &refusal) {
		return refusedPlan(refusal.ErrorBody), nil
	}
	if err != nil {
		return contract.PlanAnswer{}, err
	}
	return bounded(said)
}

// choice calls the author's function that chooses which members should leave.
func choice(ctx context.Context, app *compiledApp, call *PlanCall) (contract.PlanAnswer, error) {
	chosen, err := app.Leaving(ctx, call, call.Request.Choose.Count)
	answer := contract.PlanAnswer{
		Verdict: contract.VerdictSafe, Reasons: []contract.PlanReason{}, WorkLost: []contract.Work{},
		Chosen: []string{},
	}
	for _, member := range chosen {
		answer.Chosen = append(answer.Chosen, member.ID)
	}
	return answer, err
}

func refusedPlan(reason contract.ErrorBody) contract.PlanAnswer {
	message := wire.Clip(reason.Message, contract.MaxMessage)
	return contract.PlanAnswer{
		Verdict: contract.VerdictUnsafe, Message: message, WorkLost: []contract.Work{},
		Reasons: []contract.PlanReason{{Code: reason.Code, Message: message, Path: reason.Path}},
	}
}

// bounded returns the author's answer within the bounds of the contract.
func bounded(p contract.PlanAnswer) (contract.PlanAnswer, error) {
	if !p.Verdict.Valid() {
		return p, fmt.Errorf("plan: verdict %q is not in the contract", p.Verdict)
	}
	if p.Verdict != contract.VerdictSafe && len(p.Reasons) == 0 {
		return p, fmt.Errorf("plan: verdict %q has no reason", p.Verdict)
	}
	p.Message = wire.Clip(p.Message, contract.MaxMessage)
	p.WorkTotal = max(p.WorkTotal, len(p.WorkLost))
	p.WorkLost = contract.BoundWork(p.WorkLost)
	p.Reasons = append([]contract.PlanReason{}, p.Reasons[:min(len(p.Reasons), contract.MaxReasons)]...)
	for i, reason := range p.Reasons {
		p.Reasons[i].Message = wire.Clip(reason.Message, contract.MaxMessage)
	}
	return p, nil
}
