package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/orphan"
	"github.com/gpuaas/app-platform/service/retry"
)

func (r *mutationResolver) CancelOperation(ctx context.Context, input model.CancelOperationInput) (*model.CancelOperationPayload, error) {
	stopped, err := operation.Cancel(ctx, r.DB, input.OperationID, read.Value(input.Reason))
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
	return read.Maybe(ctx, read.Of(ctx).Instances, obj.InstanceID)
}

func (r *operationResolver) Blockers(ctx context.Context, obj *operation.View) ([]*blocker.Blocker, error) {
	return read.Many(ctx, read.Of(ctx).OperationBlockers, obj.ID)
}

func (r *operationResolver) Steps(ctx context.Context, obj *operation.View) ([]*db.OperationStep, error) {
	if obj.Loaded != nil {
		return obj.Loaded, nil
	}
	return read.Many(ctx, read.Of(ctx).Steps, obj.ID)
}

func (r *operationResolver) CostSoFar(ctx context.Context, obj *operation.View) (*orphan.Money, error) {
	return read.Maybe(ctx, read.Of(ctx).Held, &obj.ID)
}

func (r *queryResolver) Operation(ctx context.Context, id ids.ID) (*operation.View, error) {
	return operation.Get(ctx, r.DB, id)
}

func (r *queryResolver) Operations(ctx context.Context, projectID ids.ID, states []lifecycle.OperationState, first *int, after *string) (*model.OperationConnection, error) {
	return read.Operations(ctx, r.DB, operation.Filter{ProjectID: projectID, States: states}, first, after,
		read.StandardPage)
}

func (r *subscriptionResolver) OperationProgress(ctx context.Context, operationID ids.ID) (<-chan *operation.View, error) {
	return r.Progress.Watch(ctx, operationID, live.EndWith(ctx))
}

func (r *Resolver) Operation() exec.OperationResolver { return &operationResolver{r} }

type operationResolver struct{ *Resolver }
