package graph

import (
	"context"
	"errors"

	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/retry"
	"github.com/vikstrous/dataloadgen"
)

func (r *mutationResolver) CancelOperation(ctx context.Context, input model.CancelOperationInput) (*model.CancelOperationPayload, error) {
	stopped, err := operation.Cancel(ctx, r.DB, input.OperationID, value(input.Reason))
	if err != nil {
		return nil, err
	}
	return &model.CancelOperationPayload{Operation: stopped}, nil
}

func (r *mutationResolver) RetryOperation(ctx context.Context, input retry.Input) (*model.RetryOperationPayload, error) {
	again, err := r.Retries.Retry(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.RetryOperationPayload{Operation: again}, nil
}

func (r *mutationResolver) ReportOperation(ctx context.Context, input operation.ReportInput) (*operation.View, error) {
	return operation.Report(ctx, r.DB, input)
}

func (r *mutationResolver) RenewOperationToken(ctx context.Context) (*model.OperationTokenPayload, error) {
	renewed, err := operation.RenewToken(ctx, r.DB, r.Keys)
	if err != nil {
		return nil, err
	}
	return &model.OperationTokenPayload{Token: renewed.Text, ExpiresAt: renewed.ExpiresAt}, nil
}

func (r *operationResolver) Instance(ctx context.Context, obj *operation.View) (*instance.View, error) {
	return maybe(ctx, loadersOf(ctx).instances, obj.InstanceID)
}

func (r *operationResolver) Blockers(ctx context.Context, obj *operation.View) ([]*blocker.Blocker, error) {
	return many(ctx, loadersOf(ctx).operationBlockers, obj.ID)
}

func (r *operationResolver) Steps(ctx context.Context, obj *operation.View) ([]*db.OperationStep, error) {
	if obj.Loaded != nil {
		return obj.Loaded, nil
	}
	steps, err := loadersOf(ctx).steps.Load(ctx, obj.ID)
	if errors.Is(err, dataloadgen.ErrNotFound) {
		return []*db.OperationStep{}, nil
	}
	return steps, err
}

func (r *queryResolver) Operation(ctx context.Context, id ids.ID) (*operation.View, error) {
	return operation.Get(ctx, r.DB, id)
}

func (r *queryResolver) Operations(ctx context.Context, projectID ids.ID, states []lifecycle.OperationState, first *int, after *string) (*model.OperationConnection, error) {
	return r.operations(ctx, operation.Filter{ProjectID: projectID, States: states}, first, after, standardPage)
}

func (r *subscriptionResolver) OperationProgress(ctx context.Context, operationID ids.ID) (<-chan *operation.View, error) {
	return r.Progress.Watch(ctx, operationID, endWith(ctx))
}

func (r *Resolver) Operation() exec.OperationResolver { return &operationResolver{r} }

type operationResolver struct{ *Resolver }
