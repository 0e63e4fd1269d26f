package volume

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// CreateInput is a new volume.
type CreateInput struct {
	ProjectID ids.ID
	Name      string
	// StorageClass is the class's name or id.
	StorageClass   string
	SizeGiB        int
	IdempotencyKey string
}

func (in *CreateInput) check() error {
	wrong := &check.Input{}
	if !volume.ValidName(in.Name) {
		wrong.Bad("input.name", volume.NameRule)
	}
	checkSize(wrong, in.SizeGiB)
	return wrong.Err()
}

func checkSize(wrong *check.Input, size int) {
	if size < 1 || size > volume.MaxSizeGiB {
		wrong.Bad("input.sizeGiB", "must be 1 to %d", volume.MaxSizeGiB)
	}
}

const createAction = "createVolume"

// Create adds a volume. The first member that uses it creates its files. Key: volume.create on the project.
//
// Faults: INVALID_ARGUMENT naming the field, NOT_FOUND, also at input.storageClass, FORBIDDEN, FAILED_PRECONDITION at
// input.storageClass when the class is disabled, CONFLICT at input.name, LIMIT_EXCEEDED at input.sizeGiB beyond the
// project's quota and at input.projectId when it has too many, POLICY_DENIED at input.storageClass or input.sizeGiB
// (size, spending), BUDGET_EXCEEDED at input.sizeGiB, IDEMPOTENCY_KEY_REUSED.
func (s *Service) Create(ctx context.Context, in CreateInput) (out *Volume, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		project, where, err := in.locate(ctx, t, createAction)
		if err != nil {
			return err
		}
		made := ids.New(ids.Volume)
		repeated, err := idem.Claim(ctx, t, idem.Key{Verb: createAction, TenantID: project.TenantID,
			ProjectID: project.ID, Value: in.IdempotencyKey, Input: in}, &made)
		if err == nil && !repeated {
			err = in.write(ctx, t, project, made)
		}
		if err != nil {
			return audit.RefusedByPolicy(t, createAction, authz.VolumeCreate, where, project.ID, err)
		}
		out, err = one(ctx, t, made)
		return err
	})
	return out, err
}

// locate loads the project and requires the key.
func (in *CreateInput) locate(ctx context.Context, t *tx.Tx, action string) (*db.Project, authz.Object, error) {
	project, err := t.Project.Query().Where(dbproject.ID(in.ProjectID)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, authz.Object{}, audit.Missing(t, action, authz.VolumeCreate, in.ProjectID)
	}
	if err != nil {
		return nil, authz.Object{}, fmt.Errorf("load project %s: %w", in.ProjectID, err)
	}
	where := authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
	return project, where, audit.Require(t, action, authz.VolumeCreate, where, project.ID)
}

// one reads a volume that is known to be there.
func one(ctx context.Context, t *tx.Tx, id ids.ID) (*Volume, error) {
	found, err := tx.Collect(ctx, t, scan, `SELECT `+columns+from+`WHERE v.id = $1`, id)
	if err != nil {
		return nil, fmt.Errorf("read volume %s: %w", id, err)
	}
	if len(found) == 0 {
		return nil, fault.NoSuch()
	}
	return found[0], nil
}

// write stores the volume, within policy and the project's quota.
func (in *CreateInput) write(ctx context.Context, t *tx.Tx, seen *db.Project, made ids.ID) error {
	rules, err := overlay.Load(ctx, t, seen.TenantID, seen.ID)
	if err != nil {
		return err
	}
	project, err := capacity.Hold(ctx, t, seen, true)
	if err != nil {
		return err
	}
	class, err := classOf(ctx, t, in.StorageClass, "input.storageClass")
	if err != nil {
		return err
	}
	if err := rules.StorageClass(class.Name, "input.storageClass"); err != nil {
		return err
	}
	if err := room(ctx, t, project, rules, in.SizeGiB, 1); err != nil {
		return err
	}
	_, err = t.Exec(ctx, `INSERT INTO volume (id, tenant_id, project_id, storage_class_id, name, size_gib, status,
		created_by,
		created_at, updated_at, correlation_id, trace_id)
		VALUES ($1, $2, $3, $4, $5, $6, 'READY', $7, $8, $8, $9, $10)`, made,
		project.TenantID, project.ID, class.ID, in.Name, in.SizeGiB, t.Actor.ID, t.Now, t.Request.CorrelationID,
		t.Request.TraceID)
	if tx.Violates(err, "volume_name_live") {
		return fault.New(fault.Conflict, "the project has a volume %q already", in.Name).At("input.name").Because(err)
	}
	if err != nil {
		return fmt.Errorf("write volume %s: %w", in.Name, err)
	}
	if err := affordable(ctx, t, rules, project.TenantID, project.ID); err != nil {
		return err
	}
	t.Wake(event.ProjectTopic(project.ID))
	return audit.Write(ctx, t, audit.Entry{Action: createAction, Key: authz.VolumeCreate, ObjectID: made,
		Object: authz.Object{TenantID: project.TenantID, ProjectID: project.ID},
		After:  map[string]any{"name": in.Name, "storageClass": class.Name, "sizeGiB": in.SizeGiB}})
}
