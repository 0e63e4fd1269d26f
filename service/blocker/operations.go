package blocker

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// openOperation is an operation that has not ended, as it was read.
type openOperation struct {
	blocker.Operation
	tenant               ids.ID
	instance, allocation *ids.ID
	adapter              string
}

// operationsSQL reads open operations with the step under way.
const operationsSQL = `SELECT o.id, o.tenant_id, o.instance_id, o.allocation_id, o.adapter_name, o.kind, o.state,
	o.message, o.targets, o.force,
		o.forced_at, o.cancel_requested_at, o.created_at, o.next_run_at, o.deadline, o.failures, o.claimed_by IS NOT NULL,
		o.claimed_by IS NULL AND NOT platform.plan_known(o.kind, o.step_plan), coalesce(h.alive, false), h.heard,
		o.dispatch_attempt, o.adapter_status,
		o.end_refusal,
		s.name, s.state, s.message, s.started_at, s.evidence
	FROM operation o
	LEFT JOIN LATERAL platform.worker_heard(o.claimed_by) h ON o.claimed_by IS NOT NULL
	LEFT JOIN LATERAL (SELECT * FROM operation_step t WHERE t.operation_id = o.id AND t.state IN ('RUNNING', 'UNDOING')
		ORDER BY t.state, t.ordinal LIMIT 1) s ON true
	WHERE o.id IN ({operations}) ORDER BY o.id`

func (r *reading) addOperation(rows pgx.Rows) error {
	var o openOperation
	var status, refusal, evidence []byte
	var name, state, message *string
	var started *time.Time
	err := rows.Scan(&o.ID, &o.tenant, &o.instance, &o.allocation, &o.adapter, &o.Kind, &o.State, &o.Message,
		&o.Targets, &o.Force, &o.ForcedAt, &o.CancelAskedAt, &o.Created, &o.Due, &o.Deadline, &o.Failures, &o.Claimed,
		&o.Unknown, &o.Holder.Alive, &o.Holder.Heard, &o.Dispatches, &status, &refusal, &name, &state,
		&message, &started,
		&evidence)
	if err != nil {
		return err
	}
	o.told(status)
	if len(refusal) > 0 && json.Unmarshal(refusal, &o.Refusal) != nil { // written by workers alone
		o.Refusal = nil
	}
	if name != nil {
		o.Step = step(*name, *state, *message, started, evidence)
		if o.Step.Started.IsZero() {
			o.Step.Started = o.Created
		}
	}
	r.found = append(r.found, &o)
	return nil
}

// told stores the adapter's newest report of this dispatch attempt.
func (o *openOperation) told(raw []byte) {
	var status adapter.Status
	if len(raw) == 0 || json.Unmarshal(raw, &status) != nil || status.Attempt < o.Dispatches {
		return
	}
	o.AdapterState, o.AdapterMessage = string(status.State), status.Message
	if status.State.Terminal() {
		return
	}
	for _, work := range status.WaitsFor[:min(len(status.WaitsFor), adapter.MaxWork)] {
		one := blocker.Work{ID: work.ID, Name: work.Name, MemberID: work.MemberID, Message: work.Message}
		if !work.Since.IsZero() {
			since := work.Since
			one.Since = &since
		}
		o.Works = append(o.Works, one)
	}
}

// formerTry is what a worker of an earlier version writes in place of operation.TriedAgain, before a time.
const formerTry = "; next try in "

// step is a step under way, with what it has noted.
func step(name, state, message string, started *time.Time, evidence []byte) *blocker.Step {
	s := &blocker.Step{Name: name, State: lifecycle.StepState(state)}
	s.Message, s.Troubled = strings.CutSuffix(message, operation.TriedAgain)
	if !s.Troubled {
		s.Message, _, s.Troubled = strings.Cut(message, formerTry)
	}
	s.Unauthenticated = unauthenticated(s.Message)
	if started != nil {
		s.Started = *started
	}
	var notes struct {
		WaitsFor struct {
			Code  fault.Code `json:"code"`
			Owner string     `json:"owner"`
		} `json:"waitsFor"`
	}
	if len(evidence) > 0 && json.Unmarshal(evidence, &notes) == nil {
		s.WaitCode, s.WaitOwner = notes.WaitsFor.Code, notes.WaitsFor.Owner
	}
	return s
}

func (r *reading) operation(id ids.ID) *openOperation {
	for _, op := range r.found {
		if op.ID == id {
			return op
		}
	}
	return nil
}

// ofOperation are the facts of an operation; deep brings along what it waits behind.
func (r *reading) ofOperation(op *openOperation, deep bool) *blocker.Facts {
	f := &blocker.Facts{
		Now: r.now, Workers: r.workers, Backlog: r.backlog[op.tenant], Operation: &op.Operation,
		AdapterName: op.adapter, Adapter: r.adapters[op.adapter],
	}
	for _, task := range r.ended[op.ID] {
		f.Ended = append(f.Ended, task.Task)
	}
	if deep {
		f.Behind = r.behind(op)
	}
	if op.instance == nil {
		return f
	}
	if in := r.instances[*op.instance]; in != nil {
		f.Instance, f.Family = &in.Instance, in.family
	}
	f.Members = r.members[*op.instance]
	f.Allocations = r.allocationsOf(*op.instance, f.Members)
	for _, task := range r.open[*op.instance] {
		if task.operation == op.ID || takesAway(op, task.MemberID) {
			f.Open = append(f.Open, task.Task)
		}
	}
	return f
}

// takesAway reports whether the operation waits for every task on the member, also those of other operations.
func takesAway(op *openOperation, member ids.ID) bool {
	switch {
	case op.Kind == lifecycle.InstanceDecommission:
		return true
	case op.Kind != lifecycle.MemberRemove && op.Kind != lifecycle.MemberReplace &&
		op.State != lifecycle.OperationCompensating:
		return false
	}
	return slices.Contains(op.Targets, member)
}

// behind is the operation on the instance that uses the allocation which this one releases.
func (r *reading) behind(op *openOperation) *blocker.Behind {
	if op.allocation == nil || op.instance != nil {
		return nil
	}
	for _, row := range r.allocations {
		if row.ID != *op.allocation || row.instance == nil {
			continue
		}
		for _, other := range r.found {
			if other.instance != nil && *other.instance == *row.instance && other.ID != op.ID {
				return &blocker.Behind{ID: other.ID, Kind: other.Kind, Instance: *row.instance, Since: other.Created,
					Blockers: blocker.Of(r.ofOperation(other, false))}
			}
		}
	}
	return nil
}
