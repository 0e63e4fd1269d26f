package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

// adapterMay are the statuses that an adapter's report alone can give the members that an operation of the kind is
// about; FAILED it can give in any operation. The platform itself sets ACTIVE and REMOVED at the operation's end, and
// DRAINED for a drain: reported by an adapter, they are kept as detail only.
var adapterMay = map[lifecycle.OperationKind][]lifecycle.MemberStatus{
	lifecycle.InstanceCreate: {lifecycle.MemberJoining},
	lifecycle.MembersAdd:     {lifecycle.MemberJoining},
	lifecycle.MemberRecover:  {lifecycle.MemberJoining},
	lifecycle.MemberDrain:    {lifecycle.MemberDraining},
	lifecycle.MemberRemove:   {lifecycle.MemberDraining, lifecycle.MemberDrained},
	lifecycle.MemberReplace:  {lifecycle.MemberDraining, lifecycle.MemberDrained},
}

// mayBecome reports whether the adapter's report is enough to give the member that status.
func mayBecome(op *db.Operation, member *db.Member, status lifecycle.MemberStatus) bool {
	if op.State == lifecycle.OperationCompensating || member.Status.CanMove(status) != nil {
		return false
	}
	if status == lifecycle.MemberFailed {
		return true
	}
	about := len(op.Targets) == 0 || slices.Contains(op.Targets, member.ID)
	return about && slices.Contains(adapterMay[op.Kind], status)
}

// Members stores the adapter's report on members of the locked instance: health and detail as reported, the status
// where that is a legal step which the adapter may take. Members of other instances are left out. What changed is
// written to the timeline.
func Members(ctx context.Context, t *tx.Tx, instance *db.Instance, op *db.Operation, reports []MemberReport) error {
	if instance == nil || len(reports) == 0 {
		return nil
	}
	said := make(map[ids.ID]MemberReport, len(reports))
	wanted := make([]ids.ID, len(reports))
	for i, report := range reports {
		said[report.ID] = report
		wanted[i] = report.ID
	}
	members, err := t.Member.Query().Where(dbmember.InstanceID(instance.ID), dbmember.IDIn(wanted...)).
		Order(db.Asc(dbmember.FieldID)).ForUpdate().All(ctx)
	if err != nil {
		return fmt.Errorf("lock the members of %s: %w", instance.ID, err)
	}
	var events []event.Draft
	recount := false
	for _, member := range members {
		changed, told, err := say(ctx, t, op, member, said[member.ID])
		if err != nil {
			return err
		}
		recount = recount || changed
		events = append(events, told...)
	}
	if recount {
		if err := roles.Recount(ctx, t, instance.ID); err != nil {
			return err
		}
	}
	return event.Append(ctx, t, instance, events...)
}

// say applies one report; it returns whether counts change, and the events for the timeline.
func say(ctx context.Context, t *tx.Tx, op *db.Operation, member *db.Member,
	report MemberReport) (bool, []event.Draft, error) {
	status, health, message := member.Status, member.Health, member.HealthMessage
	if report.Status != nil && mayBecome(op, member, *report.Status) {
		status = *report.Status
	}
	if report.Health != nil {
		health = *report.Health
	}
	if report.Message != nil {
		message = Clip(*report.Message, maxText)
	}
	detail, err := detailOf(member.AdapterDetail, report)
	if err != nil {
		return false, nil, err
	}
	if status == member.Status && health == member.Health && message == member.HealthMessage &&
		string(detail) == string(member.AdapterDetail) {
		return false, nil, nil
	}
	_, err = t.Exec(ctx, `UPDATE member SET status = $2, health = $3, health_message = $4, adapter_detail = $5,
		updated_at = $6,
		last_operation_id = $7, correlation_id = $8 WHERE id = $1`,
		member.ID, status, health, message, detail, t.Now, op.ID, op.CorrelationID)
	if err != nil {
		return false, nil, fmt.Errorf("update member %s: %w", member.ID, err)
	}
	if status == member.Status && health == member.Health {
		return false, nil, nil
	}
	draft := event.Draft{
		Type: lifecycle.EventMemberChanged, OperationID: op.ID, MemberID: member.ID, CorrelationID: op.CorrelationID,
		Message: fmt.Sprintf("%s %d is %s, %s", member.ComponentKey, member.Ordinal, lifecycle.Wire(status),
			lifecycle.Wire(health)),
		Payload: map[string]any{"componentKey": member.ComponentKey, "index": member.Ordinal, "status": status,
			"health": health},
	}
	if status != member.Status && status == lifecycle.MemberFailed {
		draft.Type = lifecycle.EventMemberFailed
	}
	return true, []event.Draft{draft}, nil
}

// detailOf is the adapter's detail with the status it claims. What a report does not say stays.
func detailOf(known json.RawMessage, report MemberReport) (json.RawMessage, error) {
	if len(report.Detail) == 0 && report.Status == nil {
		return known, nil
	}
	var detail map[string]json.RawMessage
	source := report.Detail
	if len(source) == 0 {
		source = known
	}
	if len(source) > 0 && json.Unmarshal(source, &detail) != nil {
		detail = map[string]json.RawMessage{"detail": source}
	}
	if detail == nil {
		detail = map[string]json.RawMessage{}
	}
	if report.Status != nil {
		detail["reportedStatus"] = json.RawMessage(`"` + string(*report.Status) + `"`)
	}
	encoded, err := json.Marshal(detail)
	if err != nil {
		return nil, fmt.Errorf("encode a member's detail: %w", err)
	}
	return Storable(encoded), nil
}
