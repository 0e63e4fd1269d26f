package triage

import (
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/runbook"
	"github.com/gpuaas/app-platform/sdk/optrace"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/triage/links"
)

// Explain makes the report from rows alone: it reads nothing, and no worker has to be alive. may reports whether the
// caller has a key on the object that the rows are about. Without an operation the rows have an audit entry at least.
func Explain(rows *Rows, may func(authz.Key) bool) *Report {
	report := &Report{Others: append([]*Other{}, rows.Others...)}
	if rows.Operation == nil {
		report.ofAudit(rows, rows.attempt())
	} else {
		report.ofOperation(rows)
	}
	report.Next = next(rows, report)
	if rows.System && report.Owner == blocker.OwnerUser {
		report.Owner = blocker.OwnerPlatform // nobody else is there
	}
	report.Links = rows.Templates.Links(report.values(rows))
	report.Evidence = evidence(rows, report)
	asked, _, _ := strings.Cut(report.Asked, " ") // an action's name stands after its field
	if branch, ok := runbook.Find(report.Code, step(rows), asked); ok && report.Code != "" {
		report.Branch = &branch
	}
	if report.Next != nil {
		report.Next.Allowed = has(may, report.Next.PermissionKey) &&
			(report.Next.also == "" || has(may, report.Next.also))
	}
	return report
}

// has reports whether the caller has the key of a name.
func has(may func(authz.Key) bool, name string) bool {
	key, err := authz.ParseKey(name)
	return err == nil && may(key)
}

// ofAudit takes the newest attempt of a request without an operation. Where the app refused or failed it, and the
// instance has a blocker, that blocker is the cause: the app's own answer only follows from it. The audit has an action
// before the app is called, and once more, with the code, where the app failed.
func (r *Report) ofAudit(rows *Rows, attempt *Audit) {
	actor := attempt.Actor
	r.InstanceID = rows.instance()
	r.CorrelationID, r.ProjectID, r.Asked, r.Requester = attempt.Correlation, attempt.Project, attempt.Action, &actor
	r.Reason, r.At = attempt.Reason, attempt.At
	first := unwell(rows)
	switch {
	case attempt.Allowed && attempt.Code == "":
		r.Stands = lifecycle.TriageAccepted
		return
	case attempt.Allowed:
		r.Stands = lifecycle.TriageFailed
	default:
		r.Stands = lifecycle.TriageRefused
	}
	r.Code, r.Owner = attempt.Code, blocker.OwnerUser
	r.Message = fault.Lookup(fault.Code(attempt.Code)).Text
	if first != nil && slices.Contains(byTheApp, fault.Code(attempt.Code)) {
		r.Code, r.Message, r.Owner = first.Code, first.Message, first.Owner
	}
}

// attempt is the newest entry of the request itself: the audit also has what the app did for it, by its own token.
func (r *Rows) attempt() *Audit {
	for _, one := range slices.Backward(r.Audits) {
		if one.Actor.Kind != string(authz.KindOperation) {
			return one
		}
	}
	return r.Audits[len(r.Audits)-1]
}

// byTheApp are the refusals that come from the app, or from the lack of its answer.
var byTheApp = []fault.Code{fault.AdapterRejected, fault.AdapterFailed, fault.AdapterInvalid, fault.AdapterUnavailable}

func (r *Report) ofOperation(rows *Rows) {
	op := rows.Operation
	r.CorrelationID, r.ProjectID, r.Asked, r.Requester = op.CorrelationID, &op.ProjectID, string(op.Kind),
		op.Requester()
	r.OperationID, r.InstanceID, r.AllocationID = &op.ID, op.InstanceID, op.AllocationID
	r.Reason, r.At, r.TraceID = op.Reason, op.CreatedAt, optrace.Context(string(op.ID)).TraceID().String()
	r.CostSoFar = rows.Cost
	switch {
	case op.State == lifecycle.OperationSucceeded && unwell(rows) != nil:
		first := unwell(rows)
		r.Stands, r.Code, r.Message, r.Owner = lifecycle.TriageUnwell, first.Code, first.Message, first.Owner
	case op.State == lifecycle.OperationSucceeded:
		r.Stands = lifecycle.TriageDone
	case op.EndedAt != nil:
		r.Stands, r.Code, r.Message, r.Owner = lifecycle.TriageFailed, op.ErrorCode, op.ErrorMessage, op.ErrorOwner
		if task := atNode(rows); task != nil && op.ErrorCode == string(fault.AdapterFailed) {
			r.Code = task.Code
		}
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

// atNode is the newest task that failed with a code that a runbook knows, unless a later one of its kind succeeded on
// the same member; nil for none. An adapter's failure follows from it, whatever code the adapter gives: the node's code
// leads to the remedy.
func atNode(rows *Rows) *Task {
	good := map[string]bool{}
	for _, task := range slices.Backward(rows.Tasks) {
		what := task.Kind + " " + string(task.MemberID)
		if task.State == string(lifecycle.TaskSucceeded) {
			good[what] = true
		}
		if _, known := runbook.Find(task.Code, step(rows), ""); known && task.State == string(lifecycle.TaskFailed) &&
			!good[what] {
			return task
		}
	}
	return nil
}

// unwell returns the first blocker of the instance itself; nil without one, or where it describes work in progress.
func unwell(rows *Rows) *blocker.Blocker {
	if len(rows.Unwell) == 0 || underWay(rows.Unwell[0].Code) {
		return nil
	}
	return rows.Unwell[0]
}

// underWay reports whether a blocker's code describes only work in progress.
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

// values are what the links are about.
func (r *Report) values(of *Rows) links.Values {
	text := func(id *ids.ID) string { return string(rows.Value(id)) }
	found := links.Values{TraceID: r.TraceID, CorrelationID: r.CorrelationID, OperationID: text(r.OperationID),
		InstanceID: text(r.InstanceID), ProjectID: text(r.ProjectID), From: r.At}
	if of.Operation != nil {
		found.To = rows.Value(of.Operation.EndedAt)
	}
	return found
}
