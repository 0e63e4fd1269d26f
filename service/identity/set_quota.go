package identity

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// maxQuota bounds what a quota may allow.
const maxQuota = 100_000

// QuotaInput is how much a project may have.
type QuotaInput struct {
	ProjectID           ids.ID
	MaxMembers, MaxGPUs *int // nil for no bound
	Reason              string
}

// SetQuota bounds what a project may have; what it has already stays. Key: project.quota.manage on the
// project's tenant. INVALID_ARGUMENT at input.maxMembers, input.maxGpus and input.reason.
func (s *Service) SetQuota(ctx context.Context, in QuotaInput) (out *db.Project, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = setQuota(ctx, t, in)
		return err
	})
	return out, err
}

func (in *QuotaInput) check() error {
	if in.Reason == "" {
		return fault.New(fault.InvalidArgument, "a quota needs a reason").
			With(fault.Reason{Code: fault.Required, Message: "must be given", Path: "input.reason"})
	}
	wrong := &check.Input{}
	wrong.Reason("input.reason", in.Reason)
	for path, most := range map[string]*int{"input.maxMembers": in.MaxMembers, "input.maxGpus": in.MaxGPUs} {
		if most != nil && (*most < 0 || *most > maxQuota) {
			wrong.Bad(path, "must be 0 to %d", maxQuota)
		}
	}
	return wrong.Err()
}

func setQuota(ctx context.Context, t *tx.Tx, in QuotaInput) (*db.Project, error) {
	const action = "setProjectQuota"
	seen, err := t.Project.Query().Where(dbproject.ID(in.ProjectID)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, audit.Missing(t, action, authz.ProjectQuotaManage, in.ProjectID)
	}
	if err != nil {
		return nil, fmt.Errorf("load project %s: %w", in.ProjectID, err)
	}
	object := authz.Object{TenantID: seen.TenantID}
	if err := audit.Require(t, action, authz.ProjectQuotaManage, object, seen.ID); err != nil {
		return nil, err
	}
	row, err := t.Project.Query().Where(dbproject.ID(in.ProjectID)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock project %s: %w", in.ProjectID, err)
	}
	before := map[string]any{"maxMembers": row.MaxMembers, "maxGpus": row.MaxGpus}
	if _, err := t.Exec(ctx, `UPDATE project SET max_members = $2, max_gpus = $3 WHERE id = $1`, row.ID, in.MaxMembers,
		in.MaxGPUs); err != nil {
		return nil, fmt.Errorf("bound project %s: %w", row.ID, err)
	}
	row.MaxMembers, row.MaxGpus = in.MaxMembers, in.MaxGPUs
	object.ProjectID = row.ID
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ProjectQuotaManage, Object: object,
		ObjectID: row.ID, Reason: in.Reason,
		Before: before, After: map[string]any{"maxMembers": in.MaxMembers, "maxGpus": in.MaxGPUs}})
}
