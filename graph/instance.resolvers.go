package graph

import (
	"context"
	"encoding/json"

	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/graph/shape"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/orphan"
)

func (r *generationResolver) Manifest(ctx context.Context, obj *db.Generation) (*db.Manifest, error) {
	return read.Of(ctx).Manifests.Load(ctx, obj.ManifestID)
}

func (r *instanceResolver) Manifest(ctx context.Context, obj *instance.View) (*db.Manifest, error) {
	if obj.Loaded != nil && obj.Loaded.Manifest != nil {
		return obj.Loaded.Manifest, nil
	}
	return read.Of(ctx).Manifests.Load(ctx, obj.ManifestID)
}

func (r *instanceResolver) Generations(ctx context.Context, obj *instance.View) ([]*db.Generation, error) {
	return read.Many(ctx, read.Of(ctx).Generations, obj.ID)
}

func (r *instanceResolver) Blockers(ctx context.Context, obj *instance.View) ([]*blocker.Blocker, error) {
	return read.Many(ctx, read.Of(ctx).InstanceBlockers, obj.ID)
}

func (r *instanceResolver) Orphans(ctx context.Context, obj *instance.View) ([]*orphan.View, error) {
	return read.Many(ctx, read.Of(ctx).Orphans, obj.ID)
}

func (r *instanceResolver) Members(ctx context.Context, obj *instance.View, first *int, after *string) (*model.MemberConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.MemberConnection](read.Members(ctx, r.Instances, obj, args))
}

func (r *instanceResolver) Operations(ctx context.Context, obj *instance.View, first *int, after *string) (*model.OperationConnection, error) {
	return read.Operations(ctx, r.DB, operation.Filter{InstanceID: obj.ID}, first, after, read.ShortPage)
}

func (r *instanceResolver) LastOperation(ctx context.Context, obj *instance.View) (*operation.View, error) {
	if obj.Loaded != nil && obj.Loaded.LastOperation != nil {
		return obj.Loaded.LastOperation, nil
	}
	return read.Maybe(ctx, read.Of(ctx).Operations, obj.LastOperationID)
}

func (r *instanceResolver) Events(ctx context.Context, obj *instance.View, first *int, after *string) (*model.EventConnection, error) {
	args, err := page.Of(first, after, read.EventPage, event.MaxPage)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.EventConnection](read.Events(ctx, r.Instances, obj, args))
}

func (r *instanceResolver) Actions(ctx context.Context, obj *instance.View) ([]*model.ActionSpec, error) {
	stored, err := r.Manifest(ctx, obj)
	if err != nil {
		return nil, err
	}
	return shape.ActionsOf(stored)
}

func (r *instanceResolver) Allocations(ctx context.Context, obj *instance.View) ([]*db.Allocation, error) {
	if obj.Loaded != nil && obj.Loaded.Allocations != nil {
		return obj.Loaded.Allocations, nil
	}
	return r.Instances.Allocations(ctx, obj.ID)
}

func (r *memberResolver) Allocation(ctx context.Context, obj *db.Member) (*db.Allocation, error) {
	return read.Maybe(ctx, read.Of(ctx).Allocations, obj.AllocationID)
}

func (r *memberResolver) Node(ctx context.Context, obj *db.Member) (*db.ComputeNode, error) {
	return read.Maybe(ctx, read.Of(ctx).Nodes, obj.NodeID)
}

func (r *memberResolver) LastOperation(ctx context.Context, obj *db.Member) (*operation.View, error) {
	return read.Maybe(ctx, read.Of(ctx).Operations, obj.LastOperationID)
}

func (r *memberResolver) Labels(ctx context.Context, obj *db.Member) (json.RawMessage, error) {
	if len(obj.Labels) == 0 {
		return json.RawMessage(`{}`), nil
	}
	return obj.Labels, nil
}

func (r *mutationResolver) LaunchInstance(ctx context.Context, input instance.LaunchInput) (*model.LaunchInstancePayload, error) {
	started, err := r.Instances.Launch(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.LaunchInstancePayload{Instance: started.Instance, Operation: started.Operation}, nil
}

func (r *mutationResolver) DecommissionInstance(ctx context.Context, input instance.DecommissionInput) (*model.DecommissionInstancePayload, error) {
	started, err := r.Instances.Decommission(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.DecommissionInstancePayload{Instance: started.Instance, Operation: started.Operation}, nil
}

func (r *mutationResolver) UpgradeInstance(ctx context.Context, input instance.UpgradeInput) (*model.InstancePayload, error) {
	return shape.InstancePayload(r.Resolver.Instances.Upgrade(ctx, input))
}

func (r *mutationResolver) SetRepairPolicy(ctx context.Context, input instance.RepairInput) (*instance.View, error) {
	return r.Resolver.Instances.SetRepair(ctx, input)
}

func (r *mutationResolver) RollbackInstance(ctx context.Context, input instance.RollbackInput) (*model.InstancePayload, error) {
	return shape.InstancePayload(r.Resolver.Instances.Rollback(ctx, input))
}

func (r *mutationResolver) InvokeAction(ctx context.Context, input instance.ActionInput) (*model.InvokeActionPayload, error) {
	answer, err := r.Instances.InvokeAction(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.InvokeActionPayload{Action: answer.Action, Output: answer.Output, CorrelationID: answer.CorrelationID},
		nil
}

func (r *queryResolver) Instance(ctx context.Context, id ids.ID) (*instance.View, error) {
	return r.instance(ctx, id)
}

func (r *queryResolver) Instances(ctx context.Context, projectID ids.ID, filter *instance.Filter, first *int, after *string) (*model.InstanceConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	which := read.Value(filter)
	which.LastOperations = read.ListWants(ctx, "lastOperation")
	which.Brief, which.BriefOperations = read.BriefList(ctx)
	return read.Connection[model.InstanceConnection](r.Resolver.Instances.List(ctx, projectID, which, args))
}

func (r *queryResolver) LaunchOptions(ctx context.Context, projectID ids.ID, appSlug string, version *string) (*model.LaunchOptions, error) {
	options, err := r.Resolver.Instances.LaunchOptions(ctx, projectID, appSlug, read.Value(version))
	if err != nil {
		return nil, err
	}
	return shape.LaunchOptions(options), nil
}

func (r *invokeActionInputResolver) ProjectID(ctx context.Context, obj *instance.ActionInput, data *ids.ID) error {
	obj.ProjectID = read.Value(data)
	return nil
}

func (r *Resolver) Generation() exec.GenerationResolver { return &generationResolver{r} }

func (r *Resolver) Instance() exec.InstanceResolver { return &instanceResolver{r} }

func (r *Resolver) Member() exec.MemberResolver { return &memberResolver{r} }

func (r *Resolver) InvokeActionInput() exec.InvokeActionInputResolver {
	return &invokeActionInputResolver{r}
}

type (
	generationResolver        struct{ *Resolver }
	instanceResolver          struct{ *Resolver }
	memberResolver            struct{ *Resolver }
	invokeActionInputResolver struct{ *Resolver }
)
