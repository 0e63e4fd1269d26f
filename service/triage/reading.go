package triage

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/blocker"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/orphan"
)

const (
	// maxMembers bounds the members of an instance that are read.
	maxMembers = 256
	// maxTasks bounds the newest tasks of a member among which those of a request are found.
	maxTasks = 200
)

// reading is what is read.
type reading struct {
	Rows
	operation *operation.View
	family    *string
	system    *bool
	blocked   blocker.One
	held      orphan.Held
	now       *time.Time
	// about is the instance that the report is about, by whatever id; empty when it is about an operation alone.
	about  ids.ID
	unwell blocker.One
}

const (
	stepsSQL = `SELECT ` + rows.OperationStepColumns + ` FROM operation_step WHERE operation_id = $1 ORDER BY ordinal`
	// What a task printed is left out: it is the app's, and may be long.
	tasksSQL = `SELECT id, kind, state, message, left(coalesce(result ->> 'code', ''), 64), exit_code, created_at,
		started_at,
			ended_at, instance_id, member_id, node_id, tenant_id, project_id FROM node_task
		WHERE operation_id = $1 ORDER BY id DESC LIMIT $2`
	// What an action did on nodes: an action has no operation, so its tasks are found by the correlation id, among the
	// newest of each of the instance's members.
	actedSQL = `SELECT t.id, t.kind, t.state, t.message, left(coalesce(t.result ->> 'code', ''), 64), t.exit_code,
		t.created_at,
			t.started_at, t.ended_at, t.instance_id, t.member_id, t.node_id, t.tenant_id, t.project_id
		FROM (SELECT id FROM member WHERE instance_id = $1 ORDER BY id DESC LIMIT $2) m
		CROSS JOIN LATERAL (SELECT * FROM node_task n WHERE n.member_id = m.id ORDER BY n.id DESC LIMIT $3) t
		WHERE t.correlation_id = $4 ORDER BY t.id DESC LIMIT $5`
	eventsSQL = `SELECT ` + rows.EventColumns + ` FROM app_instance_event
		WHERE operation_id = $1 AND (instance_id = (SELECT o.instance_id FROM operation o WHERE o.id = $1)
			OR instance_id IS NULL AND allocation_id = (SELECT o.allocation_id FROM operation o WHERE o.id = $1))
		ORDER BY occurred_at DESC, seq DESC LIMIT $2`
	auditsSQL = `SELECT id, tenant_id, project_id, actor_kind, actor_id, actor_name, permission_key, action, object_id,
		repeats,
			allowed, code, correlation_id, reason, created_at FROM audit_entry WHERE correlation_id = nullif(coalesce(
		(SELECT o.correlation_id FROM operation o WHERE o.id = $1), $2), '') ORDER BY id DESC LIMIT $3`
	systemSQL = `SELECT system FROM instance
		WHERE id = coalesce((SELECT o.instance_id FROM operation o WHERE o.id = $1), $2)`
	familySQL = `SELECT permission_family FROM instance
		WHERE id = coalesce((SELECT o.instance_id FROM operation o WHERE o.id = $1), $2)`
	callSQL = `SELECT adapter_name, dispatch_attempt, coalesce(adapter_status ->> 'state', ''),
			left(coalesce(adapter_status ->> 'message', ''), 2000)
		FROM operation WHERE id = $1 AND adapter_name <> '' AND dispatch_attempt > 0`
	instanceSQL = `SELECT id, status, health, generation, created_at FROM instance
		WHERE id = coalesce((SELECT o.instance_id FROM operation o WHERE o.id = $1), $2)`
	membersSQL = `SELECT m.id, coalesce(m.node_id, ''), coalesce(n.name, ''), m.status, m.health
		FROM member m LEFT JOIN compute_node n ON n.id = m.node_id
		WHERE m.instance_id = coalesce((SELECT o.instance_id FROM operation o WHERE o.id = $1), $2) AND NOT m.removed
		ORDER BY m.id LIMIT $3`
	othersSQL = `SELECT id, kind, state, created_at, tenant_id, project_id, instance_id FROM operation
		WHERE id = ANY ($1) ORDER BY id DESC`
)

func (r *reading) queries(of *subject) []tx.Query {
	op := of.operation()
	r.blocked = blocker.ForOne(op)
	all := r.blocked.Queries()
	if of.Instance != nil {
		r.about, r.unwell = *of.Instance, blocker.ForInstance(*of.Instance)
		all = append(all, r.unwell.Queries()...)
	}
	tasks := tx.Rows(&r.Tasks, scanTask, tasksSQL, op, maxEvidence)
	if op == "" && of.Instance != nil {
		tasks = tx.Rows(&r.Tasks, scanTask, actedSQL, *of.Instance, maxEvidence, maxTasks, of.Correlation, maxEvidence)
	}
	return append(all, r.held.Query(op), tx.Row(&r.now, pgx.RowToAddrOf[time.Time], `SELECT now()`),
		tx.Row(&r.operation, operation.Scan, `SELECT `+operation.Columns+` FROM operation WHERE id = $1`, op),
		tx.Row(&r.family, pgx.RowToAddrOf[string], familySQL, op, of.Instance),
		tx.Row(&r.system, pgx.RowToAddrOf[bool], systemSQL, op, of.Instance),
		tx.Rows(&r.Steps, rows.OperationStep, stepsSQL, op),
		tasks,
		tx.Rows(&r.Events, event.Scan, eventsSQL, op, maxEvidence),
		tx.Rows(&r.Audits, scanAudit, auditsSQL, op, of.Correlation, maxEvidence),
		tx.Row(&r.Call, pgx.RowToAddrOfStructByPos[Call], callSQL, op),
		tx.Row(&r.Instance, pgx.RowToAddrOfStructByPos[Instance], instanceSQL, op, of.Instance),
		tx.Rows(&r.Members, pgx.RowToAddrOfStructByPos[Member], membersSQL, op, of.Instance, maxMembers),
		tx.Rows(&r.Others, scanOther, othersSQL, of.others()))
}

func scanTask(row pgx.CollectableRow) (*Task, error) {
	t := &Task{}
	return t, row.Scan(&t.ID, &t.Kind, &t.State, &t.Message, &t.Code, &t.ExitCode, &t.CreatedAt, &t.StartedAt,
		&t.EndedAt, &t.InstanceID, &t.MemberID, &t.NodeID, &t.Tenant, &t.InProj)
}

func scanAudit(row pgx.CollectableRow) (*Audit, error) {
	a := &Audit{}
	return a, row.Scan(&a.ID, &a.Tenant, &a.Project, &a.Actor.Kind, &a.Actor.ID, &a.Actor.Name, &a.Key, &a.Action,
		&a.ObjectID, &a.Repeats, &a.Allowed, &a.Code, &a.Correlation, &a.Reason, &a.At)
}

func scanOther(row pgx.CollectableRow) (*Other, error) {
	o := &Other{}
	var instance *ids.ID
	err := row.Scan(&o.OperationID, &o.Kind, &o.State, &o.At, &o.object.TenantID, &o.object.ProjectID, &instance)
	o.object.InstanceID = rows.Value(instance)
	return o, err
}

// object is what the report is about, for authorisation.
func (r *reading) object() authz.Object {
	if op := r.operation; op != nil {
		return authz.Object{TenantID: op.TenantID, ProjectID: op.ProjectID, InstanceID: rows.Value(op.InstanceID),
			AppSlug: op.AppSlug}
	}
	object := r.Audits[0].object()
	object.InstanceID = r.about
	return object
}

func (a *Audit) object() authz.Object {
	return authz.Object{TenantID: rows.Value(a.Tenant), ProjectID: rows.Value(a.Project)}
}

// permitted are the rows that the actor may read, oldest first.
func (r *reading) permitted(actor *authz.Actor) *Rows {
	out := &Rows{Operation: r.operation, Family: rows.Value(r.family), System: rows.Value(r.system),
		Steps: r.Steps, Blockers: r.blocked.List(),
		Cost: r.held.Cost(), Now: rows.Value(r.now), hidden: map[string]int{}}
	if r.operation != nil {
		out.Call = r.Call
	}
	if read, err := authz.FamilyKey(out.Family, "instance.read"); err == nil && actor.AllowsOn(read, r.object()) {
		out.Instance, out.Members = r.Instance, r.Members
		if r.about != "" {
			out.Unwell = r.unwell.List()
		}
	}
	hidden := func(what string, of, left int) {
		if of > left {
			out.hidden[what] = of - left
		}
	}
	out.Tasks = without(r.Tasks, func(t *Task) bool {
		return !actor.AllowsOn(authz.TaskRead, authz.Object{TenantID: t.Tenant, ProjectID: t.InProj,
			InstanceID: t.InstanceID, NodeID: t.NodeID})
	})
	hidden("task rows", len(r.Tasks), len(out.Tasks))
	out.Events = without(r.Events, func(e *event.Event) bool {
		key, err := authz.FamilyKey(e.PermissionFamily, "instance.read")
		if e.InstanceID == nil { // the timeline of an allocation that no instance uses
			key, err = authz.AllocationRead, nil
		}
		return err != nil || !actor.AllowsOn(key, r.object())
	})
	hidden("event rows", len(r.Events), len(out.Events))
	out.Audits = without(r.Audits, func(a *Audit) bool {
		own := a.Actor.Kind == string(actor.Kind) && a.Actor.ID == string(actor.ID)
		return !own && !actor.AllowsOn(authz.AuditRead, a.object())
	})
	hidden("audit rows", len(r.Audits), len(out.Audits))
	out.Others = slices.DeleteFunc(r.Others, func(o *Other) bool {
		return !actor.AllowsOn(authz.OperationRead, o.object)
	})
	return out
}

// without returns the rows that are not hidden in the other order, oldest first.
func without[T any](newestFirst []T, hidden func(T) bool) []T {
	out := slices.DeleteFunc(slices.Clone(newestFirst), hidden)
	slices.Reverse(out)
	return out
}
