package instance

import (
	"context"
	"encoding/json"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/change/engine"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func (s *Service) engine() *engine.Engine { return &engine.Engine{DB: s.DB, Calls: s.Calls} }

// accept accepts a change of an instance.
func (s *Service) accept(ctx context.Context, request *change.Request) (*Started, error) {
	outcome, err := s.engine().Accept(ctx, request)
	if err != nil {
		return nil, err
	}
	return &Started{Instance: &View{Instance: outcome.Instance}, Operation: outcome.Operation}, nil
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
	started, err := s.accept(ctx, request)
	if err != nil {
		return nil, err
	}
	return started.Operation, nil
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

// requestAgain returns the request that was stored with an operation.
func requestAgain(kind lifecycle.OperationKind, stored json.RawMessage) (*change.Request, error) {
	switch kind {
	case lifecycle.InstanceUpgrade:
		in, err := change.ReadInput[UpgradeInput](stored)
		return in.request(), err
	case lifecycle.InstanceRollback:
		in, err := change.ReadInput[RollbackInput](stored)
		return in.request(), err
	}
	in, err := change.ReadInput[DecommissionInput](stored)
	return in.request(), err
}
