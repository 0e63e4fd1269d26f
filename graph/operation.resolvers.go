package graph

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/operation"
)

func (r *mutationResolver) ReportOperation(ctx context.Context, input model.ReportOperationInput) (*operation.View, error) {
	panic(fmt.Errorf("not implemented: ReportOperation - reportOperation"))
}

func (r *mutationResolver) RenewOperationToken(ctx context.Context) (*model.OperationTokenPayload, error) {
	panic(fmt.Errorf("not implemented: RenewOperationToken - renewOperationToken"))
}

func (r *operationResolver) Instance(ctx context.Context, obj *operation.View) (*instance.View, error) {
	panic(fmt.Errorf("not implemented: Instance - instance"))
}

func (r *operationResolver) Steps(ctx context.Context, obj *operation.View) ([]*db.OperationStep, error) {
	panic(fmt.Errorf("not implemented: Steps - steps"))
}

func (r *queryResolver) Operation(ctx context.Context, id ids.ID) (*operation.View, error) {
	panic(fmt.Errorf("not implemented: Operation - operation"))
}

func (r *queryResolver) Operations(ctx context.Context, projectID ids.ID, states []lifecycle.OperationState, first *int, after *string) (*model.OperationConnection, error) {
	panic(fmt.Errorf("not implemented: Operations - operations"))
}

func (r *subscriptionResolver) OperationProgress(ctx context.Context, operationID ids.ID) (<-chan *operation.View, error) {
	panic(fmt.Errorf("not implemented: OperationProgress - operationProgress"))
}

func (r *Resolver) Operation() exec.OperationResolver { return &operationResolver{r} }

type operationResolver struct{ *Resolver }
