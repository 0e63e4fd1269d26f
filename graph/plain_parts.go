package graph

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/plain"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// leaves are the types that refer to no other.
func (t *tables) leaves() {
	t.step = stepTable()
	t.role = &plain.Type{Name: "ComponentRole", Fields: map[string]plain.Field{
		"componentKey": text(func(r *instance.Role) string { return r.ComponentKey }),
		"displayName":  text(func(r *instance.Role) string { return r.DisplayName }),
		"desired":      number(func(r *instance.Role) int { return r.Desired }),
		"current":      number(func(r *instance.Role) int { return r.Current }),
		"healthy":      number(func(r *instance.Role) int { return r.Healthy }),
		"summary":      text(func(r *instance.Role) string { return r.Summary }),
	}}
	t.failure = &plain.Type{Name: "Failure", Fields: map[string]plain.Field{
		"code":      text(func(f *operation.Failure) string { return f.Code }),
		"message":   text(func(f *operation.Failure) string { return f.Message }),
		"owner":     text(func(f *operation.Failure) string { return f.Owner }),
		"retryable": truth(func(f *operation.Failure) bool { return f.Retryable }),
	}}
	t.actor = &plain.Type{Name: "Actor", Fields: map[string]plain.Field{
		"kind": text(func(a *authz.Ref) string { return a.Kind }),
		"id":   text(func(a *authz.Ref) string { return a.ID }),
		"name": text(func(a *authz.Ref) string { return a.Name }),
	}}
	t.pageInfo = &plain.Type{Name: "PageInfo", Fields: map[string]plain.Field{
		"hasNextPage":     truth(func(p *model.PageInfo) bool { return p.HasNextPage }),
		"hasPreviousPage": truth(func(p *model.PageInfo) bool { return p.HasPreviousPage }),
		"startCursor":     optional(func(p *model.PageInfo) *string { return p.StartCursor }),
		"endCursor":       optional(func(p *model.PageInfo) *string { return p.EndCursor }),
	}}
	t.action = &plain.Type{Name: "ActionSpec", Fields: map[string]plain.Field{
		"name":          text(func(a *model.ActionSpec) string { return a.Name }),
		"displayName":   text(func(a *model.ActionSpec) string { return a.DisplayName }),
		"permissionKey": text(func(a *model.ActionSpec) string { return a.PermissionKey }),
		"risk":          text(func(a *model.ActionSpec) lifecycle.ActionRisk { return a.Risk }),
		"inputSchema":   document(func(a *model.ActionSpec) json.RawMessage { return a.InputSchema }),
		"outputSchema":  document(func(a *model.ActionSpec) json.RawMessage { return a.OutputSchema }),
	}}
}

func stepTable() *plain.Type {
	type s = db.OperationStep
	return &plain.Type{Name: "OperationStep", Fields: map[string]plain.Field{
		"id":        text(func(s *s) ids.ID { return s.ID }),
		"name":      text(func(s *s) string { return s.Name }),
		"ordinal":   number(func(s *s) int { return s.Ordinal }),
		"state":     text(func(s *s) lifecycle.StepState { return s.State }),
		"attempt":   number(func(s *s) int { return s.Attempt }),
		"message":   text(func(s *s) string { return s.Message }),
		"evidence":  document(func(s *s) json.RawMessage { return s.Evidence }),
		"startedAt": moment(func(s *s) *time.Time { return s.StartedAt }),
		"endedAt":   moment(func(s *s) *time.Time { return s.EndedAt }),
	}}
}

// places are where an instance runs and what it was launched from, as far as details show it.
func (t *tables) places() {
	t.allocation = &plain.Type{Name: "Allocation", Implements: []string{"Node"}, Fields: map[string]plain.Field{
		"id":        text(func(a *db.Allocation) ids.ID { return a.ID }),
		"projectId": text(func(a *db.Allocation) ids.ID { return a.ProjectID }),
		"name":      text(func(a *db.Allocation) string { return a.Name }),
		"shape":     text(func(a *db.Allocation) lifecycle.CapacityShape { return a.Shape }),
		"gpuCount":  number(func(a *db.Allocation) int { return a.GpuCount }),
		"sku":       text(func(a *db.Allocation) string { return a.Sku }),
		"region":    text(func(a *db.Allocation) string { return a.Region }),
		"status":    text(func(a *db.Allocation) lifecycle.AllocationStatus { return a.Status }),
		"createdAt": instant(func(a *db.Allocation) time.Time { return a.CreatedAt }),
	}}
	t.node = &plain.Type{Name: "ComputeNode", Implements: []string{"Node"}, Fields: map[string]plain.Field{
		"id":      text(func(n *db.ComputeNode) ids.ID { return n.ID }),
		"name":    text(func(n *db.ComputeNode) string { return n.Name }),
		"address": text(func(n *db.ComputeNode) string { return n.Address }),
		"status":  text(func(n *db.ComputeNode) lifecycle.NodeStatus { return n.Status }),
		"gpus":    number(func(n *db.ComputeNode) int { return n.Gpus }),
	}}
	t.manifest = &plain.Type{Name: "Manifest", Implements: []string{"Node"}, Fields: map[string]plain.Field{
		"id":          text(func(m *db.Manifest) ids.ID { return m.ID }),
		"appSlug":     text(func(m *db.Manifest) string { return m.AppSlug }),
		"version":     text(func(m *db.Manifest) string { return m.Version }),
		"displayName": text(func(m *db.Manifest) string { return m.DisplayName }),
		"summary":     text(func(m *db.Manifest) string { return m.Summary }),
		"stage":       text(func(m *db.Manifest) lifecycle.Stage { return m.Stage }),
		"digest":      text(func(m *db.Manifest) string { return m.Digest }),
	}}
}

// connections are the pages and their edges.
func (t *tables) connections() {
	t.instances, t.instanceEdge = connection[model.InstanceConnection, model.InstanceEdge, instance.View]("Instance", t, &t.instanceEdge, &t.instance,
		func(c *model.InstanceConnection) ([]*model.InstanceEdge, *model.PageInfo) { return c.Edges, c.PageInfo },
		func(e *model.InstanceEdge) (string, *instance.View) { return e.Cursor, e.Node })
	t.members, t.memberEdge = connection[model.MemberConnection, model.MemberEdge, db.Member]("Member", t, &t.memberEdge, &t.member,
		func(c *model.MemberConnection) ([]*model.MemberEdge, *model.PageInfo) { return c.Edges, c.PageInfo },
		func(e *model.MemberEdge) (string, *db.Member) { return e.Cursor, e.Node })
	t.events, t.eventEdge = connection[model.EventConnection, model.EventEdge, event.Event]("Event", t, &t.eventEdge, &t.event,
		func(c *model.EventConnection) ([]*model.EventEdge, *model.PageInfo) { return c.Edges, c.PageInfo },
		func(e *model.EventEdge) (string, *event.Event) { return e.Cursor, e.Node })
	t.operations, t.operationEdge = connection[model.OperationConnection, model.OperationEdge, operation.View]("Operation", t, &t.operationEdge, &t.operation,
		func(c *model.OperationConnection) ([]*model.OperationEdge, *model.PageInfo) {
			return c.Edges, c.PageInfo
		},
		func(e *model.OperationEdge) (string, *operation.View) { return e.Cursor, e.Node })
}

// connection is the tables of a page C and its edges E over nodes N.
func connection[C, E, N any](name string, t *tables, edge, node **plain.Type, page func(*C) ([]*E, *model.PageInfo), row func(*E) (string, *N)) (whole, one *plain.Type) {
	whole = &plain.Type{Name: name + "Connection", Fields: map[string]plain.Field{
		"edges": plain.Many(of(edge), func(_ context.Context, c *C, _ plain.Args) ([]*E, error) { edges, _ := page(c); return edges, nil }),
		"pageInfo": plain.One(of(&t.pageInfo), func(_ context.Context, c *C, _ plain.Args) (*model.PageInfo, error) {
			_, info := page(c)
			return info, nil
		}),
	}}
	one = &plain.Type{Name: name + "Edge", Fields: map[string]plain.Field{
		"cursor": text(func(e *E) string { cursor, _ := row(e); return cursor }),
		"node":   plain.One(of(node), func(_ context.Context, e *E, _ plain.Args) (*N, error) { _, n := row(e); return n, nil }),
	}}
	return whole, one
}
