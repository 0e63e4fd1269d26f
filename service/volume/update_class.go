package volume

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// UpdateClassInput is what changes of a storage class; nil stays.
type UpdateClassInput struct {
	StorageClassID     ids.ID
	Title, Description *string
	// Disabled classes take no new volumes; those that there are stay.
	Disabled *bool
	Reason   string
}

// UpdateClass changes a storage class. Key: storage.class.manage on the platform. Faults: INVALID_ARGUMENT naming the
// field, FORBIDDEN, NOT_FOUND.
func (s *Service) UpdateClass(ctx context.Context, in UpdateClassInput) (out *Class, err error) {
	wrong := &check.Input{}
	checkText(wrong, in.Title, in.Description)
	if in.Title == nil && in.Description == nil && in.Disabled == nil {
		wrong.Bad("input", "must set at least one field to change")
	}
	wrong.Reason("input.reason", in.Reason)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "updateStorageClass"
		if err := audit.Require(t, action, authz.StorageClassManage, object, in.StorageClassID); err != nil {
			return err
		}
		found, err := tx.Collect(ctx, t, scanClass, `SELECT `+classColumns+` FROM storage_class c WHERE c.id = $1
			FOR UPDATE`,
			in.StorageClassID)
		if err != nil {
			return fmt.Errorf("lock storage class %s: %w", in.StorageClassID, err)
		}
		if len(found) == 0 {
			return audit.Missing(t, action, authz.StorageClassManage, in.StorageClassID)
		}
		before := found[0]
		changed, err := tx.Collect(ctx, t, scanClass, `UPDATE storage_class c SET title = coalesce($2, c.title),
			description = coalesce($3, c.description), disabled = coalesce($4, c.disabled), updated_at = $5
			WHERE c.id = $1 RETURNING `+classColumns, before.ID, in.Title, in.Description, in.Disabled, t.Now)
		if err != nil {
			return fmt.Errorf("update storage class %s: %w", before.ID, err)
		}
		out = changed[0]
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.StorageClassManage, ObjectID: out.ID,
			Reason: in.Reason, Before: shownClass(before), After: shownClass(out)})
	})
	return out, err
}
