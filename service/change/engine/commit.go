package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change/verdict"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

// seatBatch bounds the members of one statement: Ent writes 20 columns for each, and PostgreSQL takes 65,535
// parameters.
const seatBatch = 1_000

// commit writes state, operation, events and audit. The answers are the plan's; nil for a change without one.
func commit(ctx context.Context, t *tx.Tx, v *verdict.Verdicts, said *answers) (*Outcome, error) {
	before := snapshot(v)
	if v.Hastened != nil {
		return hasten(ctx, t, v, before)
	}
	events, _, err := operation.SupersedeAll(ctx, t, v.Superseded, v.Minted.Operation, v.Kind)
	if err != nil {
		return nil, err
	}
	events = append(events, accepted(v, t)...)
	if v.Launch != nil {
		if err := createInstance(ctx, t, v, len(events)); err != nil {
			return nil, err
		}
	}
	op, err := createOperation(ctx, t, v, said)
	if err != nil {
		return nil, err
	}
	if err := write(ctx, t, v, op); err != nil {
		return nil, err
	}
	if err := tell(ctx, t, v, op, events); err != nil {
		return nil, err
	}
	if err := record(ctx, t, v, op, before); err != nil {
		return nil, err
	}
	out := &Outcome{Instance: v.Instance, Member: v.Member, Going: v.Going, Operation: &operation.View{Operation: op}}
	return out, out.loadMembers(ctx, t, v.Minted)
}

// tell writes the change's events, and makes its operation the instance's newest. A launch's row has both already.
func tell(ctx context.Context, t *tx.Tx, v *verdict.Verdicts, op *db.Operation, events []event.Draft) error {
	if v.Launch != nil {
		return event.Begin(t, v.Instance, events...)
	}
	return event.AppendWith(ctx, t, v.Instance, []event.Column{operation.Newest(v.Instance, op)}, events...)
}

// hasten forces the open operation that already does what the change requests. The idempotency key remembers it.
func hasten(ctx context.Context, t *tx.Tx, v *verdict.Verdicts, before map[string]any) (*Outcome, error) {
	told, err := operation.Hasten(ctx, t, v.Hastened, v.Asked.Reason)
	if err != nil {
		return nil, err
	}
	v.Minted.Operation = v.Hastened.ID
	if v.Asked.IdempotencyKey != "" {
		if err := idem.Store(ctx, t, keyOf(v.Locked), v.Minted); err != nil {
			return nil, err
		}
	}
	if err := event.Append(ctx, t, v.Instance, told); err != nil {
		return nil, err
	}
	if err := record(ctx, t, v, v.Hastened, before); err != nil {
		return nil, err
	}
	return &Outcome{Instance: v.Instance, Member: v.Member, Going: v.Going,
		Operation: &operation.View{Operation: v.Hastened}}, nil
}

func createOperation(ctx context.Context, t *tx.Tx, v *verdict.Verdicts, said *answers) (*db.Operation, error) {
	desired, err := desiredChange(v, said)
	if err != nil {
		return nil, err
	}
	return operation.Create(ctx, t, operation.Draft{
		ID: v.Minted.Operation, Kind: v.Kind, TenantID: v.Instance.TenantID, ProjectID: v.Instance.ProjectID,
		Instance: v.Instance, AdapterName: v.Instance.RuntimeBackend, DesiredChange: desired, Targets: v.Targets(),
		DeadlineSeconds: v.Conditions.DeadlineSeconds, OnDeadline: v.Conditions.OnDeadline, Force: v.Force,
		Reason: v.Asked.Reason, RetryOf: v.Asked.RetryOf, CorrelationID: t.Request.CorrelationID,
	})
}

// write writes what the kind changes beside its operation.
func write(ctx context.Context, t *tx.Tx, v *verdict.Verdicts, op *db.Operation) error {
	if v.Rule.Places {
		if err := seat(ctx, t, v, op); err != nil {
			return err
		}
	}
	more := moreWanted(v)
	for _, key := range slices.Sorted(maps.Keys(more)) {
		if err := roles.WantMore(ctx, t, v.Instance, key, more[key]); err != nil {
			return err
		}
	}
	switch {
	case v.Launch != nil:
		firstGeneration(t, v, op)
	case v.Kind == lifecycle.InstanceDecommission:
		return operation.Stop(ctx, t, v.Instance)
	case v.Kind == lifecycle.MemberRemove:
		touch(t, op, v.Going...)
	case v.Member != nil:
		touch(t, op, v.Member)
	}
	return nil
}

// seat creates the members that come, PENDING on the nodes of their allocations, and binds those allocations to the
// instance. A launch binds all that it names or requests, whether or not a member sits there.
func seat(ctx context.Context, t *tx.Tx, v *verdict.Verdicts, op *db.Operation) error {
	creates := make([]*db.MemberCreate, 0, len(v.Seats))
	var bound []ids.ID
	for _, seat := range v.Seats {
		walls := v.WallsOf(seat)
		create := t.Member.Create().SetID(seat.ID).SetTenantID(v.Instance.TenantID).SetProjectID(v.Instance.ProjectID).
			SetInstanceID(v.Instance.ID).SetComponentKey(seat.ComponentKey).SetOrdinal(seat.Ordinal).
			SetStatus(lifecycle.MemberPending).
			SetProfile(walls.Profile).SetNillableIsolationClass(walls.Class).SetMaxPids(walls.MaxPids).
			SetAllocationID(seat.Allocation.ID).SetNillableNodeID(seat.Allocation.NodeID).
			SetCorrelationID(op.CorrelationID).SetCreatedAt(t.Now).SetUpdatedAt(t.Now)
		if v.Launch == nil { // a launch is the operation of the instance, not of a member
			create.SetLastOperationID(op.ID)
		}
		creates = append(creates, create)
		bound = append(bound, seat.Allocation.ID)
		if node := seat.Allocation.NodeID; node != nil {
			t.Wake(event.NodeTopic(*node)) // its members' network changes
		}
	}
	if v.Launch != nil {
		bound = nil
		for _, allocation := range v.Afterwards() {
			bound = append(bound, allocation.ID)
		}
		if err := wakeShared(ctx, t, v.Instance); err != nil {
			return err
		}
	}
	for len(creates) > 0 {
		n := min(len(creates), seatBatch)
		if err := t.Member.CreateBulk(creates[:n]...).Exec(ctx); err != nil {
			return fmt.Errorf("create members of %s: %w", v.Instance.ID, err)
		}
		creates = creates[n:]
	}
	t.Last().Queue(`UPDATE allocation SET instance_id = $1 WHERE id = ANY ($2)`, v.Instance.ID, bound)
	return nil
}

// wakeShared wakes the nodes of the control planes that the launched instance's project is attached to: they let its
// members in.
func wakeShared(ctx context.Context, t *tx.Tx, launched *db.Instance) error {
	found, err := t.Query(ctx, `SELECT instance_id FROM control_plane_share WHERE project_id = $1
		AND status = 'ATTACHED'
		AND ended_at IS NULL`,
		launched.ProjectID)
	if err != nil {
		return fmt.Errorf("find control planes that %s shares: %w", launched.ProjectID, err)
	}
	var host ids.ID
	_, err = pgx.ForEachRow(found, []any{&host}, func() error {
		t.Wake(event.InstanceTopic(host))
		return nil
	})
	return err
}

// touch makes the operation the members' last. Their states move once the operation is carried out.
func touch(t *tx.Tx, op *db.Operation, members ...*db.Member) {
	touched := make([]ids.ID, len(members))
	for i, member := range members {
		touched[i] = member.ID
		member.LastOperationID, member.CorrelationID, member.UpdatedAt = &op.ID, op.CorrelationID, t.Now
	}
	t.Last().Queue(`UPDATE member SET last_operation_id = $2, correlation_id = $3, updated_at = $4 WHERE id = ANY ($1)`,
		touched, op.ID, op.CorrelationID, t.Now)
}

// desiredChange returns what is stored as the operation's desired change.
func desiredChange(v *verdict.Verdicts, said *answers) (json.RawMessage, error) {
	if v.Launch != nil {
		return json.Marshal(map[string]any{"components": v.Counts})
	}
	input, err := json.Marshal(v.Asked.Input)
	if err != nil {
		return nil, fmt.Errorf("encode the input: %w", err)
	}
	private := operation.Private{
		Input: input, KeepFailed: v.Conditions.KeepFailed, Planned: said.planned(), From: v.From, To: v.To,
	}
	for _, op := range v.Superseded {
		private.Supersedes = append(private.Supersedes, op.ID)
	}
	for _, allocation := range v.Created {
		private.CreatedAllocations = append(private.CreatedAllocations, allocation.ID)
	}
	return operation.WithPrivate(contractChange(v, false), private)
}
