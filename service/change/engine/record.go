package engine

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change/verdict"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// accepted returns the timeline's events of the accepted change.
func accepted(v *verdict.Verdicts, t *tx.Tx) []event.Draft {
	if v.Launch != nil {
		return launched(v, t)
	}
	drafts := requested(v, t)
	for _, kind := range v.Kind.Effects().Accepted {
		drafts = append(drafts, event.Draft{
			Type: kind, OperationID: v.Minted.Operation, CorrelationID: t.Request.CorrelationID,
			Message: v.Rule.Noun + " requested", Payload: map[string]any{"reason": v.Asked.Reason},
		})
	}
	return append(drafts, event.Draft{
		Type: lifecycle.EventOperationAccepted, OperationID: v.Minted.Operation, MemberID: v.MemberID,
		CorrelationID: t.Request.CorrelationID,
		Message:       v.Rule.Noun + " accepted",
		Payload:       map[string]any{"kind": v.Kind, "deadline": due(v, t), "force": v.Force, "targets": v.Targets()},
	})
}

// requested returns the timeline's events of capacity that was placed for the change.
func requested(v *verdict.Verdicts, t *tx.Tx) (drafts []event.Draft) {
	for _, allocation := range v.Created {
		payload := map[string]any{"allocation": allocation.ID, "createdBy": v.Minted.Operation,
			"shape":    allocation.Shape,
			"gpuCount": allocation.GpuCount, "sku": allocation.Sku, "region": allocation.Region}
		drafts = append(drafts, event.Draft{
			Type: lifecycle.EventAllocationRequested, OperationID: v.Minted.Operation,
			CorrelationID: t.Request.CorrelationID,
			Message:       "allocation " + allocation.Name + " requested", Payload: payload,
		}, event.Draft{
			Type: lifecycle.EventAllocationReady, OperationID: v.Minted.Operation,
			CorrelationID: t.Request.CorrelationID,
			Message:       "allocation " + allocation.Name + " is ready", Payload: payload,
		})
	}
	return drafts
}

// due returns the deadline of the change's operation.
func due(v *verdict.Verdicts, t *tx.Tx) time.Time {
	return operation.Due(t, v.Conditions.DeadlineSeconds)
}

// snapshot returns the state before or after the change, as the audit shows it. That of a launch is nil before.
func snapshot(v *verdict.Verdicts) map[string]any {
	if v.Launch != nil {
		return nil
	}
	shown := map[string]any{"status": v.Instance.Status, "desired": v.Wanted}
	if v.Member != nil {
		shown["member"] = shownMember(v.Member)
		return shown
	}
	var going []any
	for _, member := range v.Going {
		going = append(going, shownMember(member))
	}
	if len(going) > 0 {
		shown["members"] = going
	}
	return shown
}

func shownMember(member *db.Member) map[string]any {
	return map[string]any{"id": member.ID, "status": member.Status, "cordoned": member.Cordoned}
}

// after returns the audit's state after the change.
func after(v *verdict.Verdicts, op *db.Operation) map[string]any {
	if v.Launch != nil {
		return launchedState(v.Instance, op)
	}
	shown := snapshot(v)
	shown["operation"], shown["kind"] = op.ID, v.Kind
	shown["force"], shown["desired"] = v.Force, wantedAfter(v)
	if v.Asked.RetryOf != "" {
		shown["retryOf"] = v.Asked.RetryOf
	}
	if len(v.Attached) > 0 {
		shown["attachedProjects"] = v.Attached
	}
	return shown
}

// record writes the audit: the change, and the allocations that were placed for it.
func record(ctx context.Context, t *tx.Tx, v *verdict.Verdicts, op *db.Operation, before map[string]any) error {
	key, err := v.Key()
	if err != nil {
		return err
	}
	entry := audit.Entry{
		Action: v.Verb(), Key: key, Object: v.Object(), ObjectID: v.SubjectID(), Reason: v.Asked.Reason,
		After: after(v, op),
	}
	if before != nil {
		entry.Before = before
	}
	err = audit.Write(ctx, t, entry)
	if err != nil || len(v.Created) == 0 {
		return err
	}
	placed := make([]ids.ID, len(v.Created))
	for i, allocation := range v.Created {
		placed[i] = allocation.ID
	}
	where := authz.Object{TenantID: v.Instance.TenantID, ProjectID: v.Instance.ProjectID}
	return audit.Write(ctx, t, audit.Entry{
		Action: v.Verb(), Key: authz.AllocationCreate, Object: where, ObjectID: v.Instance.ProjectID,
		Reason: v.Asked.Reason, After: map[string]any{"allocations": placed, "operation": op.ID},
	})
}
