package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	dbtenant "github.com/gpuaas/app-platform/ent/generated/db/tenant"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// SetInput is an overlay to be written; a project implies its tenant, and with neither it is the platform's.
type SetInput struct {
	TenantID, ProjectID *ids.ID
	Document            json.RawMessage
	// ExpectedRevision is the revision that it replaces, 0 for the first overlay.
	ExpectedRevision int
	Reason           string
}

// place is the level that an overlay is written for: the platform, a tenant or a project.
type place struct {
	scope               lifecycle.PolicyScope
	tenantID, projectID ids.ID
}

func (p place) object() authz.Object {
	return authz.Object{TenantID: p.tenantID, ProjectID: p.projectID}
}

// key names the lock of the level; empty for the platform's.
func (p place) key() ids.ID {
	if p.projectID != "" {
		return p.projectID
	}
	return p.tenantID
}

// check refuses what is wrong with the input by itself and reads the document for the scope that it names.
func (in *SetInput) check() (*policy.Document, error) {
	var input check.Input
	input.Reason("input.reason", in.Reason)
	if in.Reason == "" {
		input.Bad("input.reason", "must be given")
	}
	if in.ExpectedRevision < 0 {
		input.Bad("input.expectedRevision", "must be 0 or the number of a revision")
	}
	if err := input.Err(); err != nil {
		return nil, err
	}
	scope := lifecycle.PolicyPlatform
	switch {
	case in.ProjectID != nil:
		scope = lifecycle.PolicyProject
	case in.TenantID != nil:
		scope = lifecycle.PolicyTenant
	}
	document, err := policy.Parse(scope, in.Document)
	if refused, ok := fault.As(err); ok {
		return nil, fault.New(refused.Code, "%s", refused.Message).
			With(fault.Prefixed("input.document", refused.Reasons)...)
	}
	return document, err
}

// SetPolicy replaces the overlay that holds. Key: policy.manage at the scope. A transaction that rests on the
// older overlay commits first, or reads this one.
//
// Faults: INVALID_ARGUMENT naming the member of the document, NOT_FOUND, FORBIDDEN, CONFLICT at
// input.expectedRevision when another revision holds, POLICY_WIDENS naming each rule that allows what is
// forbidden above it.
func (s *Service) SetPolicy(ctx context.Context, in SetInput) (out *db.PolicyOverlay, err error) {
	document, err := in.check()
	if err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = set(ctx, t, in, document)
		return err
	})
	return out, err
}

func set(ctx context.Context, t *tx.Tx, in SetInput, document *policy.Document) (*db.PolicyOverlay, error) {
	const action = "setPolicy"
	at, err := placeOf(ctx, t, action, in)
	if err != nil {
		return nil, err
	}
	before, problem, err := judge(ctx, t, at, in, document, true)
	if err != nil {
		return nil, err
	}
	if problem != nil && problem.Code == fault.PolicyWidens {
		return nil, audit.Refused(t, action, authz.PolicyManage, at.object(), at.key(), problem)
	}
	if problem != nil {
		return nil, problem
	}
	if before != nil {
		if _, err := t.Exec(ctx, `UPDATE policy_overlay SET superseded_at = $2
			WHERE id = $1`, before.ID, t.Now); err != nil {
			return nil, fmt.Errorf("end overlay %s: %w", before.ID, err)
		}
	}
	create := t.PolicyOverlay.Create().SetID(ids.New(ids.PolicyOverlay)).SetScope(at.scope).
		SetRevision(in.ExpectedRevision + 1).
		SetDocument(in.Document).SetReason(in.Reason).SetUpdatedBy(string(t.Actor.ID)).SetCreatedAt(t.Now)
	if at.tenantID != "" {
		create.SetTenantID(at.tenantID)
	}
	if at.projectID != "" {
		create.SetProjectID(at.projectID)
	}
	row, err := create.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("write an overlay: %w", err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.PolicyManage, Object: at.object(),
		ObjectID: row.ID,
		Before:   shown(before), After: shown(row), Reason: in.Reason})
}

// placeOf loads the project or tenant that the overlay is for, and requires policy.manage there.
func placeOf(ctx context.Context, t *tx.Tx, action string, in SetInput) (place, error) {
	at := place{scope: lifecycle.PolicyPlatform}
	switch {
	case in.ProjectID != nil:
		row, err := t.Project.Query().Where(dbproject.ID(*in.ProjectID)).Only(ctx)
		if db.IsNotFound(err) {
			return at, audit.Missing(t, action, authz.PolicyManage, *in.ProjectID)
		}
		if err != nil {
			return at, fmt.Errorf("load project %s: %w", *in.ProjectID, err)
		}
		if in.TenantID != nil && *in.TenantID != row.TenantID {
			return at, fault.New(fault.InvalidArgument, "the project belongs to another tenant").At("input.tenantId")
		}
		at = place{scope: lifecycle.PolicyProject, tenantID: row.TenantID, projectID: row.ID}
	case in.TenantID != nil:
		row, err := t.Tenant.Query().Where(dbtenant.ID(*in.TenantID)).Only(ctx)
		if db.IsNotFound(err) {
			return at, audit.Missing(t, action, authz.PolicyManage, *in.TenantID)
		}
		if err != nil {
			return at, fmt.Errorf("load tenant %s: %w", *in.TenantID, err)
		}
		at = place{scope: lifecycle.PolicyTenant, tenantID: row.ID}
	}
	return at, audit.Require(t, action, authz.PolicyManage, at.object(), at.key())
}

// judge locks the levels above, then this level, for itself or shared with other readers. It checks the overlay
// against the levels above and the expected revision against the overlay that holds now, before, which is nil for
// none. A problem is what the overlay is refused for.
func judge(ctx context.Context, t *tx.Tx, at place, in SetInput, document *policy.Document,
	alone bool) (before *db.PolicyOverlay, problem *fault.Fault, err error) {
	var above *policy.Effective
	if at.scope != lifecycle.PolicyPlatform {
		tenant := ids.ID("")
		if at.scope == lifecycle.PolicyProject {
			tenant = at.tenantID
		}
		if above, err = overlay.Load(ctx, t, tenant, ""); err != nil {
			return nil, nil, err
		}
	}
	if err := overlay.Lock(ctx, t, at.key(), alone); err != nil {
		return nil, nil, err
	}
	if before, err = holding(ctx, t, at); err != nil {
		return nil, nil, err
	}
	revision := 0
	if before != nil {
		revision = before.Revision
	}
	if revision != in.ExpectedRevision {
		return before, fault.New(fault.Conflict, "the current revision is %d, not %d: read it and decide again",
			revision, in.ExpectedRevision).
			At("input.expectedRevision").Retry(false), nil
	}
	if above == nil {
		return before, nil, nil
	}
	if wider := policy.Widens(above, document); len(wider) > 0 {
		return before, fault.New(fault.PolicyWidens, "the overlay would allow what a level above it forbids: %s",
			wider[0].Message).
			With(fault.Prefixed("input.document", wider)...), nil
	}
	return before, nil, nil
}

// holding returns the overlay that holds in a place; nil for none.
func holding(ctx context.Context, t *tx.Tx, at place) (*db.PolicyOverlay, error) {
	found, err := t.Query(ctx, `SELECT `+rows.PolicyOverlayColumns+` FROM policy_overlay
		WHERE superseded_at IS NULL AND scope = $1 AND coalesce(project_id, tenant_id, '') = $2`, at.scope, at.key())
	if err != nil {
		return nil, fmt.Errorf("load the policy of %s: %w", at.key(), err)
	}
	row, err := pgx.CollectExactlyOneRow(found, rows.PolicyOverlay)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load the policy of %s: %w", at.key(), err)
	}
	return row, nil
}

// shown is what the audit keeps of an overlay; nil for none.
func shown(row *db.PolicyOverlay) any {
	if row == nil {
		return nil
	}
	return map[string]any{"scope": row.Scope, "revision": row.Revision, "document": row.Document}
}
