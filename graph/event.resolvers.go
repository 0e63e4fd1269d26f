package graph

import (
	"context"
	"fmt"
	"github.com/gpuaas/app-platform/graph/live"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/event"
)

func (r *auditEntryResolver) Actor(ctx context.Context, obj *db.AuditEntry) (*authz.Ref, error) {
	panic(fmt.Errorf("not implemented: Actor - actor"))
}

func (r *queryResolver) AuditEntries(ctx context.Context, projectID ids.ID, first *int, after *string) (*model.AuditEntryConnection, error) {
	panic(fmt.Errorf("not implemented: AuditEntries - auditEntries"))
}

func (r *subscriptionResolver) InstanceTimeline(ctx context.Context, instanceID ids.ID, after *string) (<-chan *event.Event, error) {
	return live.Channel(ctx), nil
}

func (r *subscriptionResolver) ProjectActivity(ctx context.Context, projectID ids.ID, after *string) (<-chan *event.Event, error) {
	return live.Channel(ctx), nil
}

func (r *Resolver) AuditEntry() exec.AuditEntryResolver { return &auditEntryResolver{r} }

type auditEntryResolver struct{ *Resolver }
