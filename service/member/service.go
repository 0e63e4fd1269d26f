// Package member holds the verbs on the members of a running instance: add, drain, cordon, uncordon, label, remove,
// replace, recover, and their plans. A verb evaluates every rule and writes the operation; the states of members move
// when a worker carries it out.
package member

import (
	"context"
	"encoding/json"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/change/engine"
	"github.com/gpuaas/app-platform/service/contract"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Service holds what the verbs need.
type Service struct {
	// DB is the database.
	DB *tx.DB
	// Calls reach adapters for plans; nil leaves their verdicts unknown.
	Calls *contract.Calls
}

// Intent describes capacity to place along with a change: one allocation for each new member.
type Intent = capacity.Want

// Input is the input of every verb on one member; each uses the fields that its mutation has.
type Input struct {
	MemberID        ids.ID
	Force           bool
	OnDeadline      lifecycle.DeadlineOutcome // empty for FAIL
	DeadlineSeconds int
	PlanHash        string `json:"-"`
	Reason          string
	IdempotencyKey  string `json:"-"`
}

// Changed is a change of a member under way.
type Changed struct {
	Member *db.Member
	// Replacement is the new member; nil unless one is replaced.
	Replacement *db.Member
	Operation   *operation.View
}

func (s *Service) engine() *engine.Engine { return &engine.Engine{DB: s.DB, Calls: s.Calls} }

// request returns the change of a kind.
func (in Input) request(kind lifecycle.OperationKind, action string) *change.Request {
	return &change.Request{
		Action: action, Kind: kind, MemberID: in.MemberID, Force: in.Force,
		Conditions: change.Conditions{DeadlineSeconds: in.DeadlineSeconds, OnDeadline: in.OnDeadline},
		Asked: change.Asked{
			PlanHash: in.PlanHash, Reason: in.Reason, IdempotencyKey: in.IdempotencyKey, Input: in,
		},
	}
}

// accept accepts a change of one member.
func (s *Service) accept(ctx context.Context, request *change.Request) (*Changed, error) {
	outcome, err := s.engine().Accept(ctx, request)
	if err != nil {
		return nil, err
	}
	out := &Changed{Member: outcome.Member, Operation: outcome.Operation}
	if len(outcome.Members) > 0 {
		out.Replacement = outcome.Members[0]
	}
	return out, nil
}

// plain are the verbs that take nothing but the member.
var plain = map[lifecycle.OperationKind]string{
	lifecycle.MemberDrain: "drainMember", lifecycle.MemberRecover: "recoverMember",
	lifecycle.MemberRemove: "removeMember",
	lifecycle.MemberCordon: "cordonMember", lifecycle.MemberUncordon: "uncordonMember",
}

// Request returns the change that the verb of a kind makes, of the kinds that take nothing but the member: for what the
// platform does in its own name.
func Request(kind lifecycle.OperationKind, in Input) *change.Request {
	return in.request(kind, plain[kind])
}

// Again calls the verb of a kind again for what an operation did not achieve.
func (s *Service) Again(
	ctx context.Context, kind lifecycle.OperationKind, again change.Again,
) (*operation.View, error) {
	request, err := requestAgain(kind, again.Input)
	if err != nil {
		return nil, err
	}
	again.Apply(request)
	outcome, err := s.engine().Accept(ctx, request)
	if err != nil {
		return nil, err
	}
	return outcome.Operation, nil
}

// PlanAgain shows what calling the verb of a kind again would do.
func (s *Service) PlanAgain(ctx context.Context, kind lifecycle.OperationKind, again change.Again) (*change.Plan,
	error) {
	request, err := requestAgain(kind, again.Input)
	if err != nil {
		return nil, err
	}
	again.Apply(request)
	return s.engine().Plan(ctx, request)
}

// requestAgain returns the request that was stored with an operation. An addition or a removal may be a scaling, which
// is tried again as one.
func requestAgain(kind lifecycle.OperationKind, stored json.RawMessage) (*change.Request, error) {
	var form struct {
		ScaleTo   *int
		MemberIDs []ids.ID
	}
	_ = json.Unmarshal(stored, &form) // what cannot be read is refused below
	switch {
	case form.ScaleTo != nil:
		in, err := change.ReadInput[ScaleInput](stored)
		return in.request(), err
	case form.MemberIDs != nil:
		in, err := change.ReadInput[RemoveInput](stored)
		return in.request(), err
	}
	switch kind {
	case lifecycle.MembersAdd:
		in, err := change.ReadInput[AddInput](stored)
		return in.request(), err
	case lifecycle.MemberReplace:
		in, err := change.ReadInput[ReplaceInput](stored)
		return in.request(), err
	case lifecycle.MemberLabel:
		in, err := change.ReadInput[LabelInput](stored)
		return in.request(), err
	}
	in, err := change.ReadInput[Input](stored)
	return in.request(kind, plain[kind]), err
}
