package instance

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func (s *Service) engine() *change.Engine { return &change.Engine{DB: s.DB, Calls: s.Calls} }

// accept accepts a change of an instance.
func (s *Service) accept(ctx context.Context, request *change.Request, write change.Writer) (*Started, error) {
	accepted, err := s.engine().Accept(ctx, request, write)
	if err != nil {
		return nil, err
	}
	return &Started{Instance: &View{Instance: accepted.Instance}, Operation: accepted.Operation}, nil
}

// Again asks a verb once more for what an operation of the kind did not come to.
func (s *Service) Again(ctx context.Context, kind lifecycle.OperationKind, again change.Again) (*operation.View, error) {
	request, write, err := requestAgain(kind, again.Input)
	if err != nil {
		return nil, err
	}
	again.Apply(&request.Asked)
	started, err := s.accept(ctx, request, write)
	if err != nil {
		return nil, err
	}
	return started.Operation, nil
}

// requestAgain is the request that was stored with an operation, and what its verb writes.
func requestAgain(kind lifecycle.OperationKind, stored json.RawMessage) (*change.Request, change.Writer, error) {
	switch kind {
	case lifecycle.InstanceUpgrade:
		in, err := read[UpgradeInput](stored)
		return in.request(), nil, err
	case lifecycle.InstanceRollback:
		in, err := read[RollbackInput](stored)
		return in.request(), nil, err
	}
	in, err := read[DecommissionInput](stored)
	return in.request(), writeDecommission, err
}

// read is a stored input; FAILED_PRECONDITION when the operation kept none.
func read[T any](stored json.RawMessage) (in T, err error) {
	if len(stored) == 0 {
		return in, fault.New(fault.FailedPrecondition, "what the operation was asked is not known any more: ask its verb anew").At("input.operationId")
	}
	if err := json.Unmarshal(stored, &in); err != nil {
		return in, fmt.Errorf("read what an operation was asked: %w", err)
	}
	return in, nil
}
