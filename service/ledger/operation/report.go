package operation

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	dboperation "github.com/gpuaas/app-platform/ent/generated/db/operation"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

// Bounds of a report.
const (
	maxReportPhase   = 100
	maxReportMessage = 2_000
	maxReportMembers = 256
	maxReportDetail  = 16 << 10
)

// ReportInput is an adapter's report on its operation. Fields that are nil change nothing.
type ReportInput struct {
	OperationID    ids.ID
	Attempt        int
	Phase, Message *string
	Percent        *int // 0 to 100
	Members        []MemberReport
}

// MemberReport is an adapter's report on one member. Fields that are nil change nothing.
type MemberReport struct {
	ID      ids.ID
	Status  *lifecycle.MemberStatus
	Health  *lifecycle.Health
	Message *string
	Detail  json.RawMessage // an object
}

// Report stores the adapter's report on an operation under way. It requires operation.report by the operation's own
// token. The dispatch attempt fences it, not the workers' claim: a take-over never refuses a healthy adapter.
//
// Faults: NOT_FOUND, FORBIDDEN, STALE_FENCE when a newer dispatch exists, FAILED_PRECONDITION when
// the operation has ended, INVALID_ARGUMENT with the field's path.
func Report(ctx context.Context, database *tx.DB, in ReportInput) (*View, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var view *View
	err := database.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		instance, op, err := lockReported(ctx, t, in)
		if err != nil {
			return err
		}
		if err := in.checkFence(op); err != nil {
			return err
		}
		if err := applyReport(ctx, t, instance, op, in); err != nil {
			return err
		}
		fresh, err := t.Operation.Get(ctx, op.ID)
		view = &View{Operation: fresh}
		return err
	})
	return view, err
}

func (in *ReportInput) check() error {
	var reasons []fault.Reason
	bad := func(path, format string, args ...any) {
		reasons = append(reasons, fault.Reason{Code: fault.BadValue, Message: fmt.Sprintf(format, args...), Path: path})
	}
	if in.Phase != nil && len(*in.Phase) > maxReportPhase {
		bad("input.phase", "must have at most %d bytes", maxReportPhase)
	}
	if in.Message != nil && len(*in.Message) > maxReportMessage {
		bad("input.message", "must have at most %d bytes", maxReportMessage)
	}
	if in.Percent != nil && (*in.Percent < 0 || *in.Percent > 100) {
		bad("input.percent", "must be 0 to 100")
	}
	if len(in.Members) > maxReportMembers {
		bad("input.members", "must have at most %d entries", maxReportMembers)
	}
	for i, member := range in.Members[:min(len(in.Members), maxReportMembers)] {
		at := fmt.Sprintf("input.members.%d", i)
		if member.Message != nil && len(*member.Message) > maxReportMessage {
			bad(at+".message", "must have at most %d bytes", maxReportMessage)
		}
		if len(member.Detail) > maxReportDetail {
			bad(at+".detail", "must have at most %d bytes", maxReportDetail)
		}
	}
	if len(reasons) > 0 {
		return fault.New(fault.InvalidArgument, "the report is not valid").With(reasons...)
	}
	return nil
}

// checkFence refuses what comes from an earlier dispatch, or too late.
func (in *ReportInput) checkFence(op *db.Operation) error {
	switch {
	case op.EndedAt != nil:
		return fault.New(fault.FailedPrecondition, "the operation has ended: it is %s", op.State).
			At("input.operationId")
	case in.Attempt < op.DispatchAttempt:
		return fault.New(fault.StaleFence, "attempt %d has been dispatched since", op.DispatchAttempt).
			At("input.attempt")
	case in.Attempt > op.DispatchAttempt:
		return fault.New(fault.InvalidArgument, "attempt %d has not been dispatched", in.Attempt).At("input.attempt")
	}
	return nil
}

// lockReported loads the operation, checks the permission, and locks instance and operation, in that order.
func lockReported(ctx context.Context, t *tx.Tx, in ReportInput) (*db.Instance, *db.Operation, error) {
	const verb = "reportOperation"
	op, err := t.Operation.Get(ctx, in.OperationID)
	if db.IsNotFound(err) {
		return nil, nil, audit.Missing(t, verb, authz.OperationReport, in.OperationID)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("load operation %s: %w", in.OperationID, err)
	}
	object := authz.Object{TenantID: op.TenantID, ProjectID: op.ProjectID, AppSlug: op.AppSlug}
	if op.InstanceID != nil {
		object.InstanceID = *op.InstanceID
	}
	if err := audit.Require(t, verb, authz.OperationReport, object, op.ID); err != nil {
		return nil, nil, err
	}
	if t.Actor.Kind != authz.KindOperation || t.Actor.ID != op.ID {
		return nil, nil, audit.Refused(t, verb, authz.OperationReport, object, op.ID,
			fault.New(fault.Forbidden, "an operation can be reported only with its own token"))
	}
	var instance *db.Instance
	if op.InstanceID != nil {
		instance, err = t.Instance.Query().Where(dbinstance.ID(*op.InstanceID)).ForUpdate().Only(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("lock instance %s: %w", *op.InstanceID, err)
		}
	}
	op, err = t.Operation.Query().Where(dboperation.ID(op.ID)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("lock operation %s: %w", in.OperationID, err)
	}
	return instance, op, nil
}

func applyReport(ctx context.Context, t *tx.Tx, instance *db.Instance, op *db.Operation, in ReportInput) error {
	progress := Progress{Phase: op.Phase, Message: op.Message, Percent: op.Percent}
	if in.Phase != nil {
		progress.Phase = *in.Phase
	}
	if in.Message != nil {
		progress.Message = *in.Message
	}
	if in.Percent != nil {
		progress.Percent = AdapterPercent(*in.Percent)
	}
	if err := Advance(ctx, t, instance, op, progress); err != nil {
		return err
	}
	if err := mergeStatus(ctx, t, op, in); err != nil {
		return err
	}
	if in.Percent != nil && *in.Percent == 100 {
		// The adapter reports that it is done, which a worker verifies; the report itself ends nothing.
		if err := queue.Wake(ctx, t, op.ID); err != nil {
			return err
		}
	}
	return Members(ctx, t, instance, op, in.Members)
}
