package secret

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
)

// list names the cursors of lists.
const list = "runtimeSecrets"

// Filter chooses secrets of a list.
type Filter struct {
	InstanceID ids.ID
	// Ended shows spent, expired and revoked ones as well.
	Ended bool
}

// List reads the secrets of an instance, newest first. It requires secret.read on the instance's project; NOT_FOUND for
// an instance that the caller cannot see.
func (s *Service) List(ctx context.Context, filter Filter, args page.Args) (*page.Page[*View], error) {
	var after ids.ID
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	sql := `SELECT ` + columns + ` FROM runtime_secret WHERE instance_id = $1 AND ($2 = '' OR id < $2)`
	if !filter.Ended {
		sql += ` AND revoked_at IS NULL AND expires_at > now() AND (delivery <> 'ONCE' OR deliveries = 0)`
	}
	var of *authz.Object
	var found []*View
	actor, err := s.DB.Read(ctx,
		tx.Row(&of, object, `SELECT id, tenant_id, project_id FROM instance WHERE id = $1`, filter.InstanceID),
		tx.Rows(&found, scan, sql+` ORDER BY id DESC LIMIT $3`, filter.InstanceID, string(after), args.First+1))
	if err != nil {
		return nil, err
	}
	if of == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.RequireOn(actor, authz.SecretRead, *of); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(v *View) string { return page.Cursor(list, v.ID) }), nil
}

func object(row pgx.CollectableRow) (*authz.Object, error) {
	out := &authz.Object{}
	return out, row.Scan(&out.InstanceID, &out.TenantID, &out.ProjectID)
}

// Get reads a secret. It requires secret.read. NOT_FOUND when it is missing or hidden.
func (s *Service) Get(ctx context.Context, id ids.ID) (*View, error) {
	var found *View
	actor, err := s.DB.Read(ctx, tx.Row(&found, scan, `SELECT `+columns+` FROM runtime_secret WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.NoSuch()
	}
	return found, authz.RequireOn(actor, authz.SecretRead, found.object())
}
