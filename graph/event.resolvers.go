package graph

import (
	"context"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/breakglass"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func (r *auditEntryResolver) Actor(ctx context.Context, obj *db.AuditEntry) (*authz.Ref, error) {
	return &authz.Ref{Kind: obj.ActorKind, ID: string(obj.ActorID), Name: obj.ActorName}, nil
}

func (r *mutationResolver) BreakGlassEndOperation(ctx context.Context, input breakglass.EndOperationInput) (*operation.View, error) {
	return r.BreakGlass.EndOperation(ctx, input)
}

func (r *mutationResolver) BreakGlassGrantRole(ctx context.Context, input breakglass.GrantRoleInput) (*db.RoleBinding, error) {
	return r.BreakGlass.GrantRole(ctx, input)
}

func (r *queryResolver) SearchAudit(ctx context.Context, filter audit.Filter, first *int, after *string) (*model.AuditEntryConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.AuditEntryConnection](audit.Search(ctx, r.DB, filter, args))
}

func (r *queryResolver) AuditChain(ctx context.Context, afterSeq int, first int) ([]*audit.Link, error) {
	return audit.Chain(ctx, r.DB, afterSeq, first)
}

func (r *queryResolver) AuditCheckpoints(ctx context.Context, afterSeq int) ([]*audit.Checkpoint, error) {
	return audit.Checkpoints(ctx, r.DB, afterSeq)
}

func (r *queryResolver) AuditEntries(ctx context.Context, projectID ids.ID, actorKinds []string, first *int, after *string) (*model.AuditEntryConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.AuditEntryConnection](audit.List(ctx, r.DB, projectID, actorKinds, args))
}

// InstanceTimeline and ProjectActivity return the encoder's channel: live.Server.Open has taken the operation,
// authorised its caller and opened its feed before the executor runs it.
func (r *subscriptionResolver) InstanceTimeline(ctx context.Context, instanceID ids.ID, after *string) (<-chan *event.Event, error) {
	return live.Channel(ctx), nil
}

func (r *subscriptionResolver) ProjectActivity(ctx context.Context, projectID ids.ID, after *string) (<-chan *event.Event, error) {
	return live.Channel(ctx), nil
}

func (r *Resolver) AuditEntry() exec.AuditEntryResolver { return &auditEntryResolver{r} }

type auditEntryResolver struct{ *Resolver }
