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

// tables are the types that are answered without the executor: what lists, details and timelines of
// instances are made of. A field that is missing here is the executor's, with its whole query.
type tables struct {
	r *Resolver

	query, instance, instances, instanceEdge, member, members, memberEdge, event, events, eventEdge,
	operation, operations, operationEdge, step, role, failure, actor, pageInfo, allocation, node, manifest, action *plain.Type
}

func newTables(r *Resolver) *tables {
	t := &tables{r: r}
	t.leaves()
	t.places()
	t.instance, t.member, t.operation = t.instanceTable(), t.memberTable(), t.operationTable()
	t.event = eventTable()
	t.connections()
	t.query = t.queryTable()
	return t
}

func of(table **plain.Type) func() *plain.Type { return func() *plain.Type { return *table } }

func (t *tables) queryTable() *plain.Type {
	return &plain.Type{Name: "Query", Fields: map[string]plain.Field{
		"instance": plain.One(of(&t.instance), func(ctx context.Context, _ *plain.Root, args plain.Args) (*instance.View, error) {
			id, err := idArg(args, "id")
			if err != nil {
				return nil, err
			}
			return t.r.instance(ctx, id)
		}),
		"instances": plain.One(of(&t.instances), func(ctx context.Context, _ *plain.Root, args plain.Args) (*model.InstanceConnection, error) {
			id, err := idArg(args, "projectId")
			if err != nil || args["filter"] != nil {
				return nil, plain.ErrNot
			}
			first, after, err := pageArg(args)
			if err != nil {
				return nil, err
			}
			return (&queryResolver{t.r}).Instances(ctx, id, nil, first, after)
		}),
		"operation": plain.One(of(&t.operation), func(ctx context.Context, _ *plain.Root, args plain.Args) (*operation.View, error) {
			id, err := idArg(args, "id")
			if err != nil {
				return nil, err
			}
			return (&queryResolver{t.r}).Operation(ctx, id)
		}),
	}}
}

func (t *tables) instanceTable() *plain.Type {
	type v = instance.View
	r := &instanceResolver{t.r}
	return &plain.Type{Name: "Instance", Implements: []string{"Node"}, Fields: map[string]plain.Field{
		"id":                 text(func(v *v) ids.ID { return v.ID }),
		"name":               text(func(v *v) string { return v.Name }),
		"tenantId":           text(func(v *v) ids.ID { return v.TenantID }),
		"projectId":          text(func(v *v) ids.ID { return v.ProjectID }),
		"appSlug":            text(func(v *v) string { return v.AppSlug }),
		"permissionFamily":   text(func(v *v) string { return v.PermissionFamily }),
		"appVersion":         text(func(v *v) string { return v.AppVersion }),
		"status":             text(func(v *v) lifecycle.InstanceStatus { return v.Status }),
		"health":             text(func(v *v) lifecycle.Health { return v.Health }),
		"healthMessage":      text(func(v *v) string { return v.HealthMessage }),
		"revision":           number(func(v *v) int { return v.Revision }),
		"config":             document(func(v *v) json.RawMessage { return v.Config }),
		"boundCapacityShape": text(func(v *v) lifecycle.CapacityShape { return v.BoundCapacityShape }),
		"operatingMode":      text(func(v *v) string { return v.Instance.OperatingMode }),
		"controlPlaneScope":  text(func(v *v) string { return v.Instance.ControlPlaneScope }),
		"runtimeBackend":     text(func(v *v) string { return v.RuntimeBackend }),
		"smoke":              truth(func(v *v) bool { return v.Smoke }),
		"correlationId":      text(func(v *v) string { return v.CorrelationID }),
		"createdAt":          instant(func(v *v) time.Time { return v.CreatedAt }),
		"updatedAt":          instant(func(v *v) time.Time { return v.UpdatedAt }),
		"releasedAt":         moment(func(v *v) *time.Time { return v.ReleasedAt }),
		"failure":            plain.One(of(&t.failure), func(_ context.Context, v *v, _ plain.Args) (*operation.Failure, error) { return v.Failure(), nil }),
		"roles":              plain.Many(of(&t.role), func(_ context.Context, v *v, _ plain.Args) ([]*instance.Role, error) { return v.Roles() }),
		"lastOperation":      plain.One(of(&t.operation), func(ctx context.Context, v *v, _ plain.Args) (*operation.View, error) { return r.LastOperation(ctx, v) }),
		"manifest":           plain.One(of(&t.manifest), func(ctx context.Context, v *v, _ plain.Args) (*db.Manifest, error) { return r.Manifest(ctx, v) }).Alone(),
		"actions":            plain.Many(of(&t.action), func(ctx context.Context, v *v, _ plain.Args) ([]*model.ActionSpec, error) { return r.Actions(ctx, v) }).Alone(),
		"allocations":        plain.Many(of(&t.allocation), func(ctx context.Context, v *v, _ plain.Args) ([]*db.Allocation, error) { return r.Allocations(ctx, v) }).Alone(),
		"members":            paged(of(&t.members), r.Members),
		"operations":         paged(of(&t.operations), r.Operations),
		"events":             paged(of(&t.events), r.Events),
	}}
}

// paged is a connection of one object.
func paged[T, U any](table func() *plain.Type, get func(ctx context.Context, obj *T, first *int, after *string) (*U, error)) plain.Field {
	return plain.One(table, func(ctx context.Context, obj *T, args plain.Args) (*U, error) {
		first, after, err := pageArg(args)
		if err != nil {
			return nil, err
		}
		return get(ctx, obj, first, after)
	}).Alone()
}

func (t *tables) memberTable() *plain.Type {
	type m = db.Member
	r := &memberResolver{t.r}
	return &plain.Type{Name: "Member", Implements: []string{"Node"}, Fields: map[string]plain.Field{
		"id":            text(func(m *m) ids.ID { return m.ID }),
		"instanceId":    text(func(m *m) ids.ID { return m.InstanceID }),
		"componentKey":  text(func(m *m) string { return m.ComponentKey }),
		"index":         number(func(m *m) int { return m.Ordinal }),
		"status":        text(func(m *m) lifecycle.MemberStatus { return m.Status }),
		"cordoned":      truth(func(m *m) bool { return m.Cordoned }),
		"health":        text(func(m *m) lifecycle.Health { return m.Health }),
		"healthMessage": text(func(m *m) string { return m.HealthMessage }),
		"correlationId": text(func(m *m) string { return m.CorrelationID }),
		"adapterDetail": document(func(m *m) json.RawMessage { return m.AdapterDetail }),
		"createdAt":     instant(func(m *m) time.Time { return m.CreatedAt }),
		"updatedAt":     instant(func(m *m) time.Time { return m.UpdatedAt }),
		"allocation":    plain.One(of(&t.allocation), func(ctx context.Context, m *m, _ plain.Args) (*db.Allocation, error) { return r.Allocation(ctx, m) }),
		"node":          plain.One(of(&t.node), func(ctx context.Context, m *m, _ plain.Args) (*db.ComputeNode, error) { return r.Node(ctx, m) }),
	}}
}

func (t *tables) operationTable() *plain.Type {
	type o = operation.View
	r := &operationResolver{t.r}
	return &plain.Type{Name: "Operation", Implements: []string{"Node"}, Fields: map[string]plain.Field{
		"id":              text(func(o *o) ids.ID { return o.ID }),
		"kind":            text(func(o *o) lifecycle.OperationKind { return o.Kind }),
		"state":           text(func(o *o) lifecycle.OperationState { return o.State }),
		"outcome":         optional(func(o *o) *lifecycle.Outcome { return o.Outcome }),
		"projectId":       text(func(o *o) ids.ID { return o.ProjectID }),
		"instanceId":      optional(func(o *o) *ids.ID { return o.InstanceID }),
		"allocationId":    optional(func(o *o) *ids.ID { return o.AllocationID }),
		"phase":           text(func(o *o) string { return o.Phase }),
		"percent":         number(func(o *o) int { return o.Percent }),
		"message":         text(func(o *o) string { return o.Message }),
		"reason":          text(func(o *o) string { return o.Reason }),
		"correlationId":   text(func(o *o) string { return o.CorrelationID }),
		"desiredChange":   document(func(o *o) json.RawMessage { return o.PublicChange() }),
		"evidence":        document(func(o *o) json.RawMessage { return o.Evidence }),
		"dispatchAttempt": number(func(o *o) int { return o.DispatchAttempt }),
		"claimEpoch":      number(func(o *o) int { return o.ClaimEpoch }),
		"deadline":        instant(func(o *o) time.Time { return o.Deadline }),
		"createdAt":       instant(func(o *o) time.Time { return o.CreatedAt }),
		"startedAt":       moment(func(o *o) *time.Time { return o.StartedAt }),
		"endedAt":         moment(func(o *o) *time.Time { return o.EndedAt }),
		"requester":       plain.One(of(&t.actor), func(_ context.Context, o *o, _ plain.Args) (*authz.Ref, error) { return o.Requester(), nil }),
		"error":           plain.One(of(&t.failure), func(_ context.Context, o *o, _ plain.Args) (*operation.Failure, error) { return o.Error(), nil }),
		"steps": plain.Many(of(&t.step), func(ctx context.Context, o *o, _ plain.Args) ([]*db.OperationStep, error) {
			return r.Steps(ctx, o)
		}).Alone(),
	}}
}

func eventTable() *plain.Type {
	type e = event.Event
	return &plain.Type{Name: "Event", Implements: []string{"Node"}, Fields: map[string]plain.Field{
		"id":            text(func(e *e) ids.ID { return e.ID }),
		"cursor":        text(func(e *e) string { return e.Cursor }),
		"seq":           number(func(e *e) int { return e.Seq }),
		"type":          text(func(e *e) string { return e.Type }),
		"orgId":         text(func(e *e) ids.ID { return e.TenantID }),
		"projectId":     text(func(e *e) ids.ID { return e.ProjectID }),
		"appSlug":       text(func(e *e) string { return e.AppSlug }),
		"appInstanceId": text(func(e *e) ids.ID { return e.InstanceID }),
		"operationId":   optional(func(e *e) *ids.ID { return e.OperationID }),
		"memberId":      optional(func(e *e) *ids.ID { return e.MemberID }),
		"message":       text(func(e *e) string { return e.Message }),
		"payload":       document(func(e *e) json.RawMessage { return e.Payload }),
		"correlationId": text(func(e *e) string { return e.CorrelationID }),
		"occurredAt":    instant(func(e *e) time.Time { return e.OccurredAt }),
	}}
}
