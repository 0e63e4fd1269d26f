package triage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/supportbundle"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Bundle is a support bundle, with what its manifest says.
type Bundle struct {
	// Name is a name for the file, and Content the file.
	Name, Content string
	// Digest is the file's SHA-256.
	Digest string
	// MadeAt is when it was put together.
	MadeAt time.Time
	// Sections are what is in it, and LeftOut what is not.
	Sections []supportbundle.Summary
	LeftOut  []supportbundle.Omission
}

// Bundle puts together what a caller gives to a person who helps with what Report reports on. It requires what Report
// requires; rows that need another key are left out, and the manifest lists them. The audit notes each bundle, with its
// digest. Faults: as for Report.
func (s *Service) Bundle(ctx context.Context, about string) (*Bundle, error) {
	found, actor, object, err := s.read(ctx, about)
	if err != nil {
		return nil, err
	}
	report := Explain(found, func(key authz.Key) bool { return actor.AllowsOn(key, object) })
	content, manifest, err := Pack(found, report, about, found.Now)
	if err != nil {
		return nil, fmt.Errorf("pack a support bundle: %w", err)
	}
	digest := supportbundle.Digest(content)
	if err := s.note(ctx, found, object, digest); err != nil {
		return nil, err
	}
	name := "support-bundle.jsonl"
	if manifest.About != "" {
		name = "support-bundle-" + manifest.About + ".jsonl"
	}
	return &Bundle{Name: name, Content: string(content), Digest: digest, MadeAt: manifest.MadeAt,
		Sections: manifest.Sections, LeftOut: manifest.LeftOut}, nil
}

// note audits that a bundle is handed out, on the operation, or on the audit entry of a request without one. On any
// other object it would be the newest entry, by which triage finds what that object's last request was.
func (s *Service) note(ctx context.Context, found *Rows, object authz.Object, digest string) error {
	entry := audit.Entry{Action: "supportBundle", Object: object, After: map[string]any{"digest": digest}}
	if found.Operation != nil {
		entry.Key, entry.ObjectID = authz.OperationRead, found.Operation.ID
	} else {
		entry.Key, entry.ObjectID = authz.AuditRead, found.attempt().ID
	}
	return s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error { return audit.Write(ctx, t, entry) })
}

// packing puts rows into a bundle and remembers the first error.
type packing struct {
	supportbundle.Builder
	err error
}

func (p *packing) add(section string, row supportbundle.Row) {
	if p.err == nil {
		p.err = p.Add(section, row)
	}
}

// Pack writes the support bundle of rows and their report: the values of the fields in the sdk's list, and no others.
func Pack(rows *Rows, report *Report, about string, at time.Time) ([]byte, *supportbundle.Manifest, error) {
	p := &packing{}
	p.request(report)
	p.operation(rows)
	for _, one := range append(append([]*blocker.Blocker{}, rows.Blockers...), rows.Unwell...) {
		p.blocker(one)
	}
	p.tasks(rows.Tasks)
	p.happenings(rows)
	p.standing(rows)
	for _, one := range report.Others {
		p.add("other", supportbundle.Row{"operationId": one.OperationID, "kind": one.Kind, "state": one.State,
			"at": one.At})
	}
	for _, what := range slices.Sorted(maps.Keys(rows.hidden)) {
		p.LeaveOut(what, "the caller does not have the permission key for them", rows.hidden[what])
	}
	if p.err != nil {
		return nil, nil, p.err
	}
	return p.File(about, at)
}

func (p *packing) request(report *Report) {
	row := supportbundle.Row{"correlationId": report.CorrelationID, "operationId": report.OperationID,
		"instanceId": report.InstanceID, "allocationId": report.AllocationID, "projectId": report.ProjectID,
		"at": report.At, "stands": report.Stands, "code": report.Code, "owner": report.Owner, "traceId": report.TraceID}
	if report.OperationID != nil {
		row["kind"] = report.Asked
	} else {
		row["asked"] = report.Asked
	}
	if branch := report.Branch; branch != nil {
		row["branch"] = branch.Ref()
	}
	if next := report.Next; next != nil {
		row["nextMutation"], row["nextPermissionKey"], row["nextAllowed"] = next.Mutation, next.PermissionKey,
			next.Allowed
	}
	p.add("request", row)
}

func (p *packing) operation(rows *Rows) {
	op := rows.Operation
	if op == nil {
		return
	}
	p.add("operation", supportbundle.Row{"id": op.ID, "kind": op.Kind, "state": op.State, "outcome": op.Outcome,
		"tenantId": op.TenantID, "projectId": op.ProjectID, "instanceId": op.InstanceID,
		"allocationId": op.AllocationID,
		"retryOf":      op.RetryOf, "requesterKind": op.RequesterKind, "requesterId": op.RequesterID,
		"percent": op.Percent,
		"force":   op.Force, "onDeadline": op.OnDeadline, "forcedAt": op.ForcedAt,
		"cancelRequestedAt": op.CancelRequestedAt,
		"dispatchAttempt":   op.DispatchAttempt, "claimEpoch": op.ClaimEpoch, "errorCode": op.ErrorCode,
		"errorOwner": op.ErrorOwner, "errorRetryable": op.ErrorRetryable, "deadline": op.Deadline,
		"createdAt": op.CreatedAt,
		"startedAt": op.StartedAt, "endedAt": op.EndedAt})
	for _, one := range rows.Steps {
		p.add("step", supportbundle.Row{"name": one.Name, "ordinal": one.Ordinal, "state": one.State,
			"attempt": one.Attempt, "startedAt": one.StartedAt, "endedAt": one.EndedAt})
	}
	if call := rows.Call; call != nil {
		p.add("call", supportbundle.Row{"attempt": call.Attempt, "state": call.State})
	}
}

// blocker adds a blocker. It includes the subject only where that is an id: a name is the tenant's data.
func (p *packing) blocker(one *blocker.Blocker) {
	row := supportbundle.Row{"code": one.Code, "owner": one.Owner, "since": one.Since, "nextRetryAt": one.NextRetryAt,
		"permissionKey": one.PermissionKey, "message": one.Message}
	if strings.Contains(one.Subject, "_") {
		row["subject"] = one.Subject
	}
	p.add("blocker", row)
}

func (p *packing) tasks(tasks []*Task) {
	for _, one := range tasks {
		p.add("task", supportbundle.Row{"id": one.ID, "kind": one.Kind, "state": one.State, "exitCode": one.ExitCode,
			"instanceId": one.InstanceID, "memberId": one.MemberID, "nodeId": one.NodeID, "createdAt": one.CreatedAt,
			"startedAt": one.StartedAt, "endedAt": one.EndedAt})
	}
}

// happenings adds the timeline and the audit.
func (p *packing) happenings(rows *Rows) {
	for _, one := range rows.Events {
		p.add("event", supportbundle.Row{"id": one.ID, "type": one.Type, "memberId": one.MemberID,
			"operationId": one.OperationID, "occurredAt": one.OccurredAt, "message": one.Message})
	}
	for _, one := range rows.Audits {
		row := supportbundle.Row{"id": one.ID, "at": one.At, "action": one.Action, "permissionKey": one.Key,
			"allowed": one.Allowed, "code": one.Code, "actorKind": one.Actor.Kind, "actorId": one.Actor.ID,
			"repeats": one.Repeats}
		if strings.Contains(one.ObjectID, "_") {
			row["objectId"] = one.ObjectID
		}
		p.add("audit", row)
	}
}

// standing adds the instance and its members as they are now.
func (p *packing) standing(rows *Rows) {
	if one := rows.Instance; one != nil {
		p.add("instance", supportbundle.Row{"id": one.ID, "status": one.Status, "health": one.Health,
			"generation": one.Generation, "createdAt": one.CreatedAt})
	}
	for _, one := range rows.Members {
		p.add("member", supportbundle.Row{"id": one.ID, "status": one.Status, "health": one.Health,
			"nodeId": one.NodeID})
	}
}
