package triage

import (
	"slices"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/runbook"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Explain makes the report from rows alone: it reads nothing, and no worker has to be alive. may reports whether the
// caller has a key on the object that the rows are about. Without an operation the rows have an audit entry at least.
func Explain(rows *Rows, may func(authz.Key) bool) *Report {
	report := &Report{Evidence: evidence(rows)}
	if rows.Operation == nil {
		report.ofAudit(rows.Audits[len(rows.Audits)-1])
	} else {
		report.ofOperation(rows)
		report.Next = next(rows, report)
	}
	if branch, ok := runbook.Find(report.Code, step(rows)); ok && report.Code != "" {
		report.Branch = &branch
	}
	if report.Next != nil {
		key, err := authz.ParseKey(report.Next.PermissionKey)
		report.Next.Allowed = err == nil && may(key)
	}
	return report
}

// ofAudit takes the newest attempt of a request that made no operation.
func (r *Report) ofAudit(attempt *Audit) {
	actor := attempt.Actor
	r.CorrelationID, r.ProjectID, r.Asked, r.Requester = attempt.Correlation, attempt.Project, attempt.Action, &actor
	r.Reason, r.At = attempt.Reason, attempt.At
	if attempt.Allowed {
		r.Stands = lifecycle.TriageAccepted
		return
	}
	r.Stands, r.Code, r.Owner = lifecycle.TriageRefused, attempt.Code, blocker.OwnerUser
	r.Message = fault.Lookup(fault.Code(attempt.Code)).Text
}

func (r *Report) ofOperation(rows *Rows) {
	op := rows.Operation
	r.CorrelationID, r.ProjectID, r.Asked, r.Requester = op.CorrelationID, &op.ProjectID, string(op.Kind), op.Requester()
	r.OperationID, r.InstanceID, r.AllocationID = &op.ID, op.InstanceID, op.AllocationID
	r.Reason, r.At = op.Reason, op.CreatedAt
	switch {
	case op.State == lifecycle.OperationSucceeded && unwell(rows) != nil:
		first := unwell(rows)
		r.Stands, r.Code, r.Message, r.Owner = lifecycle.TriageUnwell, first.Code, first.Message, first.Owner
	case op.State == lifecycle.OperationSucceeded:
		r.Stands = lifecycle.TriageDone
	case op.EndedAt != nil:
		r.Stands, r.Code, r.Message, r.Owner = lifecycle.TriageFailed, op.ErrorCode, op.ErrorMessage, op.ErrorOwner
	case len(rows.Blockers) == 0:
		r.Stands = lifecycle.TriageUnderWay
	default:
		first := rows.Blockers[0]
		r.Stands, r.Code, r.Message, r.Owner = lifecycle.TriageBlocked, first.Code, first.Message, first.Owner
		if underWay(first.Code) {
			r.Stands = lifecycle.TriageUnderWay
		}
	}
}

// unwell is what keeps the instance from where it should be though its newest operation succeeded; nil for nothing.
func unwell(rows *Rows) *blocker.Blocker {
	if len(rows.Unwell) == 0 || underWay(rows.Unwell[0].Code) {
		return nil
	}
	return rows.Unwell[0]
}

// underWay reports whether a blocker's code tells only what goes on.
func underWay(code string) bool {
	return slices.ContainsFunc(blocker.Rules(), func(r blocker.Rule) bool { return r.Code == code && r.UnderWay })
}

// step is the name of the step that the operation is in, or failed in; empty for none.
func step(rows *Rows) string {
	for _, state := range []lifecycle.StepState{lifecycle.StepUndoing, lifecycle.StepRunning, lifecycle.StepFailed} {
		for _, one := range rows.Steps {
			if one.State == state {
				return one.Name
			}
		}
	}
	return ""
}

// next is the action that clears what the report is about.
func next(rows *Rows, report *Report) *Next {
	switch report.Stands {
	case lifecycle.TriageBlocked:
		return unblock(rows, rows.Blockers[0])
	case lifecycle.TriageFailed:
		return again(rows)
	}
	return nil
}

// keyBreakGlass is the key of a blocker that only an operator clears, by setting a rule aside.
const keyBreakGlass = "break_glass.use"

// unblock is the mutation of the key that clears a blocker.
func unblock(rows *Rows, first *blocker.Blocker) *Next {
	op := rows.Operation
	switch key := first.PermissionKey; key {
	case authz.OperationCancel.String():
		return &Next{Mutation: "cancelOperation", Argument: "operationId", Value: op.ID, PermissionKey: key}
	case keyBreakGlass:
		return &Next{Mutation: "breakGlassEndOperation", Argument: "operationId", Value: op.ID, PermissionKey: key}
	case rows.Family + ".instance.delete":
		if op.Kind == lifecycle.InstanceDecommission {
			return decommission(rows, true)
		}
	}
	return nil
}

// again is what repeats an operation that has failed, or takes away what it left.
func again(rows *Rows) *Next {
	op := rows.Operation
	switch {
	case op.ErrorCode == operation.Superseded:
		return nil
	case op.Kind == lifecycle.InstanceCreate:
		return decommission(rows, false)
	case op.Kind == lifecycle.AllocationRelease && op.AllocationID != nil:
		return &Next{Mutation: "releaseAllocation", Plan: "planReleaseAllocation", Argument: "allocationId",
			Value: *op.AllocationID, PermissionKey: authz.AllocationRelease.String()}
	case op.Kind == lifecycle.AllocationRelease:
		return nil
	}
	return &Next{Mutation: "retryOperation", Plan: "planRetryOperation", Argument: "operationId", Value: op.ID,
		PermissionKey: authz.OperationRetry.String()}
}

func decommission(rows *Rows, force bool) *Next {
	if rows.Operation.InstanceID == nil || rows.Family == "" {
		return nil
	}
	return &Next{Mutation: "decommissionInstance", Plan: "planDecommissionInstance", Argument: "instanceId",
		Value: *rows.Operation.InstanceID, Force: force, PermissionKey: rows.Family + ".instance.delete"}
}

// evidence lists the rows.
func evidence(rows *Rows) []*Evidence {
	all := []*Evidence{}
	blockers := rows.Blockers
	if rows.Operation != nil && rows.Operation.EndedAt != nil {
		blockers = rows.Unwell
	}
	for _, one := range blockers {
		all = append(all, &Evidence{Kind: lifecycle.EvidenceOfBlocker, At: one.Since, What: one.Code, Message: one.Message})
	}
	for _, one := range rows.Steps {
		if one.StartedAt != nil {
			all = append(all, &Evidence{Kind: lifecycle.EvidenceOfStep, At: *one.StartedAt, What: one.Name, State: string(one.State),
				Message: one.Message})
		}
	}
	for _, one := range rows.Tasks {
		all = append(all, &Evidence{Kind: lifecycle.EvidenceOfTask, ID: pointer(one.ID), At: one.CreatedAt, What: one.Kind,
			State: one.State, Message: one.Message})
	}
	for _, one := range rows.Events {
		all = append(all, &Evidence{Kind: lifecycle.EvidenceOfEvent, ID: pointer(one.ID), At: one.OccurredAt, What: one.Type,
			Message: one.Message})
	}
	for _, one := range rows.Audits {
		state := "ALLOWED"
		if !one.Allowed {
			state = one.Code
		}
		all = append(all, &Evidence{Kind: lifecycle.EvidenceOfAudit, ID: pointer(one.ID), At: one.At, What: one.Action, State: state,
			Message: one.Reason})
	}
	return all
}

func pointer(id ids.ID) *ids.ID { return &id }
