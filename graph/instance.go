package graph

import (
	"context"
	"encoding/json"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// instance reads an instance with what the selection asks for, and hands its neighbours to the
// loaders of the fields below.
func (r *Resolver) instance(ctx context.Context, id ids.ID) (*instance.View, error) {
	view, err := r.Instances.Get(ctx, id, wanted(ctx))
	if err != nil {
		return nil, err
	}
	prime(loadersOf(ctx), view.Loaded)
	return view, nil
}

func prime(to *loaders, loaded *instance.Loaded) {
	for _, node := range loaded.Nodes {
		to.nodes.Prime(node.ID, node)
	}
	for _, allocation := range loaded.Allocations {
		to.allocations.Prime(allocation.ID, allocation)
	}
	if loaded.Manifest != nil {
		to.manifests.Prime(loaded.Manifest.ID, loaded.Manifest)
	}
	if last := loaded.LastOperation; last != nil {
		to.operations.Prime(last.ID, last)
		if loaded.Steps != nil {
			to.steps.Prime(last.ID, loaded.Steps)
		}
	}
}

// members answers from what came with the instance when the arguments are the same.
func (r *Resolver) members(ctx context.Context, view *instance.View, args page.Args) (*page.Page[*db.Member], error) {
	if view.Loaded != nil && view.Loaded.Members != nil && view.Loaded.MembersArgs == args {
		return view.Loaded.Members, nil
	}
	return r.Instances.Members(ctx, view.ID, args)
}

func (r *Resolver) events(ctx context.Context, view *instance.View, args page.Args) (*page.Page[*event.Event], error) {
	if view.Loaded != nil && view.Loaded.Events != nil && view.Loaded.EventsArgs == args {
		return view.Loaded.Events, nil
	}
	return r.Instances.Events(ctx, view.ID, args)
}

func (r *Resolver) operations(ctx context.Context, filter operation.Filter, first *int, after *string, standard int) (*model.OperationConnection, error) {
	args, err := page.Of(first, after, standard, page.Max)
	if err != nil {
		return nil, err
	}
	found, err := operation.List(ctx, r.DB, filter, args)
	if err != nil {
		return nil, err
	}
	return &model.OperationConnection{Edges: edges(found, operationEdge), PageInfo: pageInfo(found)}, nil
}

func instanceEdge(cursor string, row *instance.View) *model.InstanceEdge {
	return &model.InstanceEdge{Cursor: cursor, Node: row}
}

func memberEdge(cursor string, row *db.Member) *model.MemberEdge {
	return &model.MemberEdge{Cursor: cursor, Node: row}
}

func eventEdge(cursor string, row *event.Event) *model.EventEdge {
	return &model.EventEdge{Cursor: cursor, Node: row}
}

func operationEdge(cursor string, row *operation.View) *model.OperationEdge {
	return &model.OperationEdge{Cursor: cursor, Node: row}
}

func instanceFilter(ctx context.Context, in *model.InstanceFilter) instance.Filter {
	out := instance.Filter{LastOperations: listWants(ctx, "lastOperation")}
	if in != nil {
		out.Statuses, out.AppSlug, out.Search = in.Statuses, value(in.AppSlug), value(in.Search)
	}
	return out
}

func launchInput(in model.LaunchInstanceInput) instance.LaunchInput {
	out := instance.LaunchInput{
		ProjectID: in.ProjectID, AppSlug: in.AppSlug, Version: value(in.Version), Name: in.Name, AllocationIDs: in.AllocationIds,
		Config: in.Config, DeadlineSeconds: in.DeadlineSeconds, Smoke: in.Smoke, Reason: value(in.Reason), IdempotencyKey: in.IdempotencyKey,
		OperatingMode: lifecycle.OperatingMode(in.OperatingMode), ControlPlaneScope: lifecycle.ControlPlaneScope(in.ControlPlaneScope),
	}
	for _, component := range in.Components {
		out.Components = append(out.Components, instance.Component{
			Key: component.Key, Count: component.Count, AllocationIDs: component.AllocationIds,
		})
	}
	return out
}

func launchOptions(options *instance.Options) *model.LaunchOptions {
	out := &model.LaunchOptions{Manifest: options.Manifest, Entitled: options.Entitled, Allocations: []*model.AllocationVerdict{}}
	for _, one := range options.Versions {
		out.Versions = append(out.Versions, &model.LaunchVersion{Version: one.Version, Stage: one.Stage, Chosen: one.Chosen, Reasons: reasonRefs(one.Reasons)})
	}
	for _, verdict := range options.Allocations {
		reasons := reasonRefs(verdict.Reasons)
		out.Allocations = append(out.Allocations, &model.AllocationVerdict{
			Allocation: verdict.Allocation, Compatible: len(reasons) == 0, Reasons: reasons,
		})
	}
	return out
}

func reasonRefs(list []instance.Reason) []*instance.Reason {
	refs := make([]*instance.Reason, len(list))
	for i := range list {
		refs[i] = &list[i]
	}
	return refs
}

// actionsOf lists what a manifest's app can be asked to do.
func actionsOf(stored *db.Manifest) ([]*model.ActionSpec, error) {
	document, err := manifest.Parse(stored.Document)
	if err != nil {
		return nil, err
	}
	actions := make([]*model.ActionSpec, len(document.Actions))
	for i, action := range document.Actions {
		actions[i] = &model.ActionSpec{
			Name: action.Name, DisplayName: action.DisplayName, PermissionKey: action.PermissionKey, Risk: risks[action.Risk],
			InputSchema: json.RawMessage(action.InputSchema), OutputSchema: json.RawMessage(action.OutputSchema),
		}
	}
	return actions, nil
}

// risks is the contract's word for each of the manifest's.
var risks = map[string]lifecycle.ActionRisk{
	"read": lifecycle.RiskRead, "write": lifecycle.RiskWrite, "destructive": lifecycle.RiskDestructive,
}
