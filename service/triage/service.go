// Package triage answers for one id what was requested, by whom, where it is now, which branch of which runbook applies,
// what that rests on, whose it is, and what to do next.
//
// The rows are read in one transaction as the caller, and the report is a pure function of them: it is the same with
// every worker dead.
package triage

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/blocker"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// maxAbout bounds the id in bytes; the platform's own correlation ids and those that callers choose are shorter.
const maxAbout = 200

// maxEvidence bounds the rows of each kind.
const maxEvidence = 50

// Service holds what the read needs.
type Service struct {
	// DB is the database.
	DB *tx.DB
}

// Report reports on the request with a correlation id, on an operation by its id, or on the newest operation of an
// instance by the instance's. It requires operation.read on the operation's project, and for a request that made no
// operation audit.read where its entry belongs; rows that need another key are left out where the caller lacks it.
// Faults: INVALID_ARGUMENT at id, NOT_FOUND when it is missing or hidden, FORBIDDEN.
func (s *Service) Report(ctx context.Context, about string) (*Report, error) {
	if about == "" || len(about) > maxAbout {
		return nil, fault.New(fault.InvalidArgument, "the id must be 1 to %d bytes", maxAbout).At("id")
	}
	op, err := s.find(ctx, about)
	if err != nil {
		return nil, err
	}
	return s.report(ctx, about, op)
}

// findSQL finds the newest operation that an id is about. A correlation id finds its operation by the audit's entries,
// which have an index of it: every accepted change has one, with the object that it is about.
const findSQL = `WITH touched AS (SELECT a.object_id AS id FROM audit_entry a
		WHERE a.correlation_id = $1 AND a.allowed AND a.object_id <> '' ORDER BY a.id DESC LIMIT 100)
	SELECT o.id FROM operation o WHERE o.id = $1
	UNION SELECT i.last_operation_id FROM instance i WHERE i.id = $1 AND i.last_operation_id IS NOT NULL
	UNION SELECT o.id FROM touched t JOIN operation o ON o.id = t.id WHERE o.correlation_id = $1
	UNION SELECT o.id FROM touched t JOIN operation o ON o.instance_id = t.id WHERE o.correlation_id = $1
	UNION SELECT o.id FROM touched t JOIN member m ON m.id = t.id JOIN operation o ON o.instance_id = m.instance_id
		WHERE o.correlation_id = $1
	UNION SELECT o.id FROM touched t JOIN allocation l ON l.id = t.id JOIN operation o ON o.id = l.release_operation_id
		WHERE o.correlation_id = $1
	ORDER BY 1 DESC LIMIT 1`

// find returns the operation that an id is about; empty for none.
func (s *Service) find(ctx context.Context, about string) (ids.ID, error) {
	var found *ids.ID
	if _, err := s.DB.Read(ctx, tx.Row(&found, pgx.RowToAddrOf[ids.ID], findSQL, about)); err != nil {
		return "", err
	}
	return rows.Value(found), nil
}

// report reads everything about an operation, or about a correlation id without one, and explains it.
func (s *Service) report(ctx context.Context, about string, op ids.ID) (*Report, error) {
	var read reading
	actor, err := s.DB.Read(ctx, read.queries(about, op)...)
	if err != nil {
		return nil, err
	}
	if read.operation == nil && len(read.Audits) == 0 {
		return nil, fault.NoSuch()
	}
	found, object := read.permitted(actor), read.object()
	switch {
	case found.Operation != nil:
		err = authz.RequireOn(actor, authz.OperationRead, object)
	case len(found.Audits) == 0:
		err = authz.RequireOn(actor, authz.AuditRead, object)
	}
	if err != nil {
		return nil, err
	}
	return Explain(found, func(key authz.Key) bool { return actor.AllowsOn(key, object) }), nil
}

// reading is what is read.
type reading struct {
	Rows
	operation *operation.View
	family    *string
	blocked   blocker.One
	// about is the instance that the report was requested of; empty when it was requested by another id.
	about  ids.ID
	unwell blocker.One
}

const (
	stepsSQL = `SELECT ` + rows.OperationStepColumns + ` FROM operation_step WHERE operation_id = $1 ORDER BY ordinal`
	// What a task printed is left out: it is the app's, and may be long.
	tasksSQL = `SELECT id, kind, state, message, created_at, instance_id, node_id, tenant_id, project_id FROM node_task
		WHERE operation_id = $1 ORDER BY id DESC LIMIT $2`
	eventsSQL = `SELECT ` + rows.EventColumns + ` FROM app_instance_event
		WHERE instance_id = (SELECT o.instance_id FROM operation o WHERE o.id = $1) AND operation_id = $1
		ORDER BY seq DESC LIMIT $2`
	auditsSQL = `SELECT id, tenant_id, project_id, actor_kind, actor_id, actor_name, action, object_id, allowed, code,
		correlation_id, reason, created_at FROM audit_entry WHERE correlation_id = coalesce(
		(SELECT o.correlation_id FROM operation o WHERE o.id = $1), $2) ORDER BY id DESC LIMIT $3`
	familySQL = `SELECT permission_family FROM instance
		WHERE id = (SELECT o.instance_id FROM operation o WHERE o.id = $1)`
)

func (r *reading) queries(about string, op ids.ID) []tx.Query {
	r.blocked = blocker.ForOne(op)
	all := r.blocked.Queries()
	if id := ids.ID(about); id.Is(ids.Instance) {
		r.about, r.unwell = id, blocker.ForInstance(id)
		all = append(all, r.unwell.Queries()...)
	}
	return append(all,
		tx.Row(&r.operation, operation.Scan, `SELECT `+operation.Columns+` FROM operation WHERE id = $1`, op),
		tx.Row(&r.family, pgx.RowToAddrOf[string], familySQL, op),
		tx.Rows(&r.Steps, rows.OperationStep, stepsSQL, op),
		tx.Rows(&r.Tasks, scanTask, tasksSQL, op, maxEvidence),
		tx.Rows(&r.Events, event.Scan, eventsSQL, op, maxEvidence),
		tx.Rows(&r.Audits, scanAudit, auditsSQL, op, about, maxEvidence))
}

func scanTask(row pgx.CollectableRow) (*Task, error) {
	t := &Task{}
	return t, row.Scan(&t.ID, &t.Kind, &t.State, &t.Message, &t.CreatedAt, &t.InstanceID, &t.NodeID, &t.Tenant, &t.InProj)
}

func scanAudit(row pgx.CollectableRow) (*Audit, error) {
	a := &Audit{}
	return a, row.Scan(&a.ID, &a.Tenant, &a.Project, &a.Actor.Kind, &a.Actor.ID, &a.Actor.Name, &a.Action, &a.ObjectID,
		&a.Allowed, &a.Code, &a.Correlation, &a.Reason, &a.At)
}

// object is what the report is about, for authorisation.
func (r *reading) object() authz.Object {
	if op := r.operation; op != nil {
		return authz.Object{TenantID: op.TenantID, ProjectID: op.ProjectID, InstanceID: rows.Value(op.InstanceID)}
	}
	return r.Audits[0].object()
}

func (a *Audit) object() authz.Object {
	return authz.Object{TenantID: rows.Value(a.Tenant), ProjectID: rows.Value(a.Project)}
}

// permitted are the rows that the actor may read, oldest first.
func (r *reading) permitted(actor *authz.Actor) *Rows {
	out := &Rows{Operation: r.operation, Family: rows.Value(r.family), Steps: r.Steps, Blockers: r.blocked.List()}
	if read, err := authz.FamilyKey(out.Family, "instance.read"); r.about != "" && err == nil && r.operation != nil &&
		actor.AllowsOn(read, r.object()) {
		out.Unwell = r.unwell.List()
	}
	out.Tasks = without(r.Tasks, func(t *Task) bool {
		return !actor.AllowsOn(authz.TaskRead, authz.Object{TenantID: t.Tenant, ProjectID: t.InProj,
			InstanceID: t.InstanceID, NodeID: t.NodeID})
	})
	out.Events = without(r.Events, func(e *event.Event) bool {
		key, err := authz.FamilyKey(e.PermissionFamily, "instance.read")
		return err != nil || !actor.AllowsOn(key, r.object())
	})
	out.Audits = without(r.Audits, func(a *Audit) bool { return !actor.AllowsOn(authz.AuditRead, a.object()) })
	return out
}

// without returns the rows that are not hidden in the other order, oldest first.
func without[T any](newestFirst []T, hidden func(T) bool) []T {
	out := slices.DeleteFunc(slices.Clone(newestFirst), hidden)
	slices.Reverse(out)
	return out
}
