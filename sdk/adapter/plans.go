package adapter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	// maxPlan bounds a plan: the platform asks while a person waits.
	maxPlan = 30 * time.Second
	// maxWorkText and maxWorkMessage are the longest fields of a piece of work, in bytes; longer
	// ones are cut.
	maxWorkText    = 200
	maxWorkMessage = 500
)

// PlanCall is what a plan has to work with: the instance and its members, node tasks that look,
// and what is asked.
type PlanCall struct {
	Call
	// Request is what is asked.
	Request PlanRequest
}

// Targets returns the members the operation would act on.
func (p *PlanCall) Targets() []Member { return targetsOf(p.Members, p.Request.Targets) }

// Change decodes the desired change into out. One that cannot be read is a refusal.
func (p *PlanCall) Change(out any) error { return decodeChange(p.Request.Change, out) }

// Validate checks the shape of a plan request. The error is an [ErrorBody] with the path of the
// field at fault.
func (p PlanRequest) Validate() error {
	switch {
	case !p.Kind.Valid():
		return invalid("kind", "%q is not an operation kind", clip(string(p.Kind), 64))
	case len(p.Targets) > MaxMembers:
		return invalid("targets", "must not be more than %d", MaxMembers)
	}
	if err := p.Platform.validate(); err != nil {
		return err
	}
	if err := validateInstance(p.Instance, p.Members); err != nil {
		return err
	}
	return validateTargets(p.Members, p.Targets)
}

// dispatch is what the plan would be as an operation, for what decides whether one may begin.
func (p PlanRequest) dispatch() Dispatch {
	return Dispatch{
		Kind: p.Kind, Attempt: 1, CorrelationID: p.CorrelationID, Instance: p.Instance, Members: p.Members,
		Targets: p.Targets, Change: p.Change, Force: p.Force, Platform: p.Platform,
	}
}

func (k *Kit) plan(ctx context.Context, r request) (answer, error) {
	var body PlanRequest
	if err := r.decode(&body); err != nil {
		return answer{}, err
	}
	if err := body.Validate(); err != nil {
		return answer{}, err
	}
	app, ok := k.apps[body.Instance.App]
	if !ok || app.Plan == nil {
		return answer{}, ErrorBody{Code: CodePlansUnsupported, Message: "this adapter does not plan operations of the app"}
	}
	ctx, cancel := context.WithTimeout(ctx, maxPlan)
	defer cancel()
	said, err := k.planned(ctx, app, body, r)
	if err != nil {
		return answer{}, actionError(err)
	}
	return answer{http.StatusOK, said}, nil
}

// planned asks the author. What a dispatch would be refused for is no error of a plan: it is the
// reason of its verdict.
func (k *Kit) planned(ctx context.Context, app *compiledApp, body PlanRequest, r request) (PlanAnswer, error) {
	log := r.log.With("instance", body.Instance.ID, "plan", body.Kind)
	call := &PlanCall{Request: body, Call: Call{
		Instance: body.Instance, Members: body.Members, Log: log,
		// Every plan looks anew, so its tasks must be new ones.
		key:   "plan." + digest(time.Now().String(), body.Platform.Token),
		tasks: NewClient(once(body.Platform), r.Header.Get(HeaderCorrelation), log),
	}}
	err := k.admit(ctx, body.dispatch())
	var said PlanAnswer
	if err == nil {
		said, err = app.Plan(ctx, call)
	}
	var refusal unprocessable
	if errors.As(refused(err), &refusal) {
		return refusedPlan(refusal.ErrorBody), nil
	}
	if err != nil {
		return PlanAnswer{}, err
	}
	return said.bounded()
}

func refusedPlan(reason ErrorBody) PlanAnswer {
	message := clip(reason.Message, MaxMessage)
	return PlanAnswer{
		Verdict: VerdictUnsafe, Message: message, WorkLost: []Work{},
		Reasons: []PlanReason{{Code: reason.Code, Message: message, Path: reason.Path}},
	}
}

// bounded brings what the author said within the bounds of the contract.
func (p PlanAnswer) bounded() (PlanAnswer, error) {
	if !p.Verdict.Valid() {
		return p, fmt.Errorf("plan: verdict %q is none of the contract", p.Verdict)
	}
	if p.Verdict != VerdictSafe && len(p.Reasons) == 0 {
		return p, fmt.Errorf("plan: verdict %q has no reason", p.Verdict)
	}
	p.Message = clip(p.Message, MaxMessage)
	p.WorkTotal = max(p.WorkTotal, len(p.WorkLost))
	p.WorkLost = boundedWork(p.WorkLost)
	p.Reasons = append([]PlanReason{}, p.Reasons[:min(len(p.Reasons), MaxReasons)]...)
	for i, reason := range p.Reasons {
		p.Reasons[i].Message = clip(reason.Message, MaxMessage)
	}
	return p, nil
}

// boundedWork copies the first [MaxWork] pieces with their texts cut; never nil.
func boundedWork(list []Work) []Work {
	bounded := append([]Work{}, list[:min(len(list), MaxWork)]...)
	for i, work := range bounded {
		work.Kind, work.ID, work.Name = clip(work.Kind, maxWorkText), clip(work.ID, maxWorkText), clip(work.Name, maxWorkText)
		work.Owner, work.Message = clip(work.Owner, maxWorkText), clip(work.Message, maxWorkMessage)
		bounded[i] = work
	}
	return bounded
}
