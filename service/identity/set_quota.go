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

// maxQuota bounds what a quota may allow, and maxVolumeQuota the GiB of volumes that it may.
const (
	maxQuota       = 100_000
	maxVolumeQuota = 1_000_000_000
)

// QuotaInput is how much a project may have.
type QuotaInput struct {
	ProjectID           ids.ID
	MaxMembers, MaxGPUs *int // nil for no bound
	MaxVolumeGiB        *int `json:",omitempty"`
	Reason              string
}

// SetQuota bounds what a project may have; what it has already stays. Key: project.quota.manage on the
// project's tenant. INVALID_ARGUMENT at input.maxMembers, input.maxGpus, input.maxVolumeGiB and input.reason.
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
	bound := func(path string, value *int, most int) {
		if value != nil && (*value < 0 || *value > most) {
			wrong.Bad(path, "must be 0 to %d", most)
		}
	}
	bound("input.maxMembers", in.MaxMembers, maxQuota)
	bound("input.maxGpus", in.MaxGPUs, maxQuota)
	bound("input.maxVolumeGiB", in.MaxVolumeGiB, maxVolumeQuota)
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
	before := map[string]any{"maxMembers": row.MaxMembers, "maxGpus": row.MaxGpus, "maxVolumeGiB": row.MaxVolumeGib}
	if _, err := t.Exec(ctx, `UPDATE project SET max_members = $2, max_gpus = $3, max_volume_gib = $4
		WHERE id = $1`, row.ID,
		in.MaxMembers, in.MaxGPUs, in.MaxVolumeGiB); err != nil {
		return nil, fmt.Errorf("bound project %s: %w", row.ID, err)
	}
	row.MaxMembers, row.MaxGpus, row.MaxVolumeGib = in.MaxMembers, in.MaxGPUs, in.MaxVolumeGiB
	object.ProjectID = row.ID
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ProjectQuotaManage, Object: object,
		ObjectID: row.ID, Reason: in.Reason,
		Before: before, After: map[string]any{"maxMembers": in.MaxMembers, "maxGpus": in.MaxGPUs,
			"maxVolumeGiB": in.MaxVolumeGiB}})
}
