package triage

import (
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// next returns the action that clears what the report is about; nil where the platform has none.
func next(rows *Rows, report *Report) *Next {
	var found *Next
	if rows.Operation == nil {
		if first := unwell(rows); first != nil && report.Code == first.Code {
			return mend(rows, first)
		}
		return nil
	}
	switch report.Stands {
	case lifecycle.TriageBlocked:
		found = unblock(rows, rows.Blockers[0])
	case lifecycle.TriageFailed:
		found = again(rows)
	case lifecycle.TriageUnwell:
		found = mend(rows, rows.Unwell[0])
	}
	return found
}

// keyBreakGlass is the key of a blocker that only an operator clears, by an exception to a rule.
const keyBreakGlass = "break_glass.use"

// unblock returns the mutation for the key that clears a blocker of an open operation.
func unblock(rows *Rows, first *blocker.Blocker) *Next {
	op := rows.Operation
	switch key := first.PermissionKey; key {
	case "":
		return nil
	case authz.OperationCancel.String():
		return rows.act("cancelOperation", op.ID, false, key, first.Code)
	case keyBreakGlass:
		return rows.act("breakGlassEndOperation", op.ID, false, key, first.Code)
	case rows.Family + "." + op.Kind.Effects().Permission:
		if op.Kind.Effects().Forcible {
			return force(rows, key, first.Code)
		}
	}
	return mend(rows, first)
}

// forced are the mutations that request a kind again with force: the open operation then continues with force.
var forced = map[lifecycle.OperationKind]string{lifecycle.MemberDrain: "drainMember",
	lifecycle.MemberRemove: "removeMember", lifecycle.MemberReplace: "replaceMember"}

// force returns the same request with force: on an instance, or on the one member that the operation works on.
func force(rows *Rows, key, code string) *Next {
	op := rows.Operation
	switch mutation := forced[op.Kind]; {
	case op.Kind == lifecycle.InstanceDecommission && op.InstanceID != nil:
		return rows.act("decommissionInstance", *op.InstanceID, true, key, code)
	case mutation != "" && len(op.Targets) == 1:
		return rows.act(mutation, op.Targets[0], true, key, code)
	}
	return nil
}

// mend returns the mutation for the key that clears what is wrong with an instance, on the blocker's subject.
func mend(rows *Rows, first *blocker.Blocker) *Next {
	subject := ids.ID(first.Subject)
	switch key := first.PermissionKey; {
	case key == authz.OperationRetry.String() && subject.Is(ids.Operation):
		return rows.act("retryOperation", subject, false, key, first.Code)
	case key == authz.AllocationRelease.String() && subject.Is(ids.Allocation):
		return rows.act("releaseAllocation", subject, false, key, first.Code)
	case rows.Family == "" || !strings.HasPrefix(key, rows.Family+"."):
	case key == rows.Family+".member.recover" && subject.Is(ids.Member):
		return rows.act("recoverMember", subject, false, key, first.Code)
	case key == rows.Family+".member.replace":
		if member := rows.memberAt(first.Subject); member != nil {
			return rows.act("replaceMember", member.ID, first.Code == codeAway || first.Code == codeRetired, key,
				first.Code)
		}
	case key == rows.Family+".instance.delete" && rows.instance() != nil:
		return rows.act("decommissionInstance", *rows.instance(), false, key, first.Code)
	}
	return nil
}

// The codes of nodes that cannot prove a teardown any more: a member leaves them only with force.
const (
	codeAway    = "NODE_OFFLINE"
	codeRetired = "NODE_RETIRED"
)

// memberAt is the member that a blocker is about: by its id, or as the only one on the node of that id or name.
func (r *Rows) memberAt(subject string) *Member {
	var on []*Member
	for _, one := range r.Members {
		if string(one.ID) == subject {
			return one
		}
		if subject != "" && (string(one.NodeID) == subject || one.Node == subject) {
			on = append(on, one)
		}
	}
	if len(on) == 1 {
		return on[0]
	}
	return nil
}

// instance returns the instance that the report is about; nil for none.
func (r *Rows) instance() *ids.ID {
	switch {
	case r.Operation != nil:
		return r.Operation.InstanceID
	case r.Instance != nil:
		return &r.Instance.ID
	}
	return nil
}

// again returns the action that repeats an operation that has failed, or removes what it left.
func again(rows *Rows) *Next {
	op := rows.Operation
	switch {
	case op.ErrorCode == operation.Superseded:
		return nil
	case op.Kind == lifecycle.InstanceCreate:
		if op.InstanceID == nil || rows.Family == "" {
			return nil
		}
		return rows.act("decommissionInstance", *op.InstanceID, false, rows.Family+".instance.delete", op.ErrorCode)
	case op.Kind == lifecycle.AllocationRelease && op.AllocationID != nil:
		return rows.act("releaseAllocation", *op.AllocationID, false, authz.AllocationRelease.String(), op.ErrorCode)
	case op.Kind == lifecycle.AllocationRelease:
		return nil
	}
	found := rows.act("retryOperation", op.ID, false, authz.OperationRetry.String(), op.ErrorCode)
	if rows.Family != "" {
		found.also = rows.Family + "." + op.Kind.Effects().Permission
	}
	return found
}

// act returns an action, ready to be sent. Its reason names the cause and the request, for later readers of the audit.
func (r *Rows) act(mutation string, on ids.ID, force bool, key, code string) *Next {
	what, correlation := "", ""
	if r.Operation != nil {
		what, correlation = string(r.Operation.ID), r.Operation.CorrelationID
	} else {
		attempt := r.attempt()
		what, correlation = attempt.Action, attempt.Correlation
	}
	why := fmt.Sprintf("triage: %s at %s, correlation id %s", code, what, correlation)
	found := ready(mutation, on, force, why, r.Key)
	found.PermissionKey = key
	return found
}
