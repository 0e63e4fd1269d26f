// Package member holds the verbs on the members of a running instance: add, drain, cordon, uncordon,
// label, remove, replace, recover, and the plans that show beforehand what they would do. A verb asks
// every rule and writes the operation; the states of members move when that is carried out.
package member

import (
	"context"
	"encoding/json"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
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

// Intent is capacity that is asked for along with a change: one allocation for each new member.
type Intent = capacity.Want

// Input is what every verb on one member takes; each reads the fields that its mutation has.
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
	// Replacement is the member that comes; nil unless one is replaced.
	Replacement *db.Member
	Operation   *operation.View
}

func (s *Service) engine() *change.Engine { return &change.Engine{DB: s.DB, Calls: s.Calls} }

// request is the change of a kind that the input asks for.
func (in Input) request(kind lifecycle.OperationKind, action string) *change.Request {
	return &change.Request{
		Action: action, Kind: kind, MemberID: in.MemberID, Force: in.Force,
		Asked: change.Asked{
			OnDeadline: in.OnDeadline, DeadlineSeconds: in.DeadlineSeconds, PlanHash: in.PlanHash, Reason: in.Reason,
			IdempotencyKey: in.IdempotencyKey, Input: in,
		},
	}
}

// accept accepts a change of one member.
func (s *Service) accept(ctx context.Context, request *change.Request, write change.Writer) (*Changed, error) {
	accepted, err := s.engine().Accept(ctx, request, write)
	if err != nil {
		return nil, err
	}
	out := &Changed{Member: accepted.Member, Operation: accepted.Operation}
	if len(accepted.Members) > 0 {
		out.Replacement = accepted.Members[0]
	}
	return out, nil
}

// plain are the verbs that need nothing but the member.
var plain = map[lifecycle.OperationKind]string{
	lifecycle.MemberDrain: "drainMember", lifecycle.MemberCordon: "cordonMember", lifecycle.MemberUncordon: "uncordonMember",
	lifecycle.MemberRecover: "recoverMember", lifecycle.MemberRemove: "removeMember",
}

// Again asks a verb once more for what an operation of the kind did not come to.
func (s *Service) Again(ctx context.Context, kind lifecycle.OperationKind, again change.Again) (*operation.View, error) {
	request, write, err := requestAgain(kind, again.Input)
	if err != nil {
		return nil, err
	}
	again.Apply(&request.Asked)
	accepted, err := s.engine().Accept(ctx, request, write)
	if err != nil {
		return nil, err
	}
	return accepted.Operation, nil
}

// requestAgain is the request that was stored with an operation, and what its verb writes.
func requestAgain(kind lifecycle.OperationKind, stored json.RawMessage) (*change.Request, change.Writer, error) {
	switch kind {
	case lifecycle.MembersAdd:
		in, err := read[AddInput](stored)
		return in.request(), writeAdd, err
	case lifecycle.MemberReplace:
		in, err := read[ReplaceInput](stored)
		return in.request(), writeReplace, err
	case lifecycle.MemberLabel:
		in, err := read[LabelInput](stored)
		return in.request(), nil, err
	case lifecycle.MemberRemove:
		in, err := read[Input](stored)
		return in.request(kind, plain[kind]), writeRemove, err
	}
	in, err := read[Input](stored)
	return in.request(kind, plain[kind]), nil, err
}
