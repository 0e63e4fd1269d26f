package volume

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// CreateClassInput is a new storage class.
type CreateClassInput struct {
	// Name is what nodes call the storage that it is served from.
	Name        string
	Kind        volume.Kind
	Title       string
	Description string
}

// CreateClass offers what nodes serve under a name. Key: storage.class.manage on the platform. Faults: INVALID_ARGUMENT
// naming the field, FORBIDDEN, CONFLICT at input.name.
func (s *Service) CreateClass(ctx context.Context, in CreateClassInput) (out *Class, err error) {
	wrong := &check.Input{}
	if !volume.ValidName(in.Name) {
		wrong.Bad("input.name", volume.NameRule)
	}
	checkText(wrong, &in.Title, &in.Description)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "createStorageClass"
		if err := audit.Require(t, action, authz.StorageClassManage, object, ""); err != nil {
			return err
		}
		out = &Class{ID: ids.New(ids.StorageClass), Name: in.Name, Kind: in.Kind, Title: in.Title,
			Description: in.Description, CreatedAt: t.Now, UpdatedAt: t.Now}
		_, err := t.Exec(ctx, `INSERT INTO storage_class (id, name, kind, title, description, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, $6)`, out.ID, out.Name, string(out.Kind), out.Title, out.Description, t.Now)
		if tx.Violates(err, "storage_class_name_key") {
			return fault.New(fault.Conflict, "there is a storage class %q already", in.Name).At("input.name").
				Because(err)
		}
		if err != nil {
			return fmt.Errorf("write storage class %s: %w", in.Name, err)
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.StorageClassManage, ObjectID: out.ID,
			After: shownClass(out)})
	})
	return out, err
}
