package identity

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Derived is something that could not have been created without a break-glass binding, and ends with it.
type Derived struct {
	// Kind is SERVICE_ACCOUNT, SERVICE_ACCOUNT_KEY, WEBHOOK or ROLE_BINDING.
	Kind string
	ID   ids.ID
	// Name is the account's, a webhook's description, or a binding's role.
	Name string
	// ProjectID is nil for a role in a whole tenant.
	ProjectID *ids.ID
	CreatedAt time.Time
	// Ended reports whether it gives nothing any more.
	Ended bool
}

// MadeUnder lists what was created under a break-glass binding, newest first, at most 200. Key: identity.binding.read
// at the binding's scope, or it is the caller's own.
func (s *Service) MadeUnder(ctx context.Context, bindingID ids.ID) ([]*Derived, error) {
	if _, err := s.RoleBinding(ctx, bindingID); err != nil {
		return nil, err
	}
	found := []*Derived{}
	_, err := s.DB.Read(ctx, tx.Rows(&found, scanDerived,
		`SELECT kind, id, name, project_id, created_at, ended FROM platform.made_under($1)`, bindingID))
	return found, err
}

func scanDerived(row pgx.CollectableRow) (*Derived, error) {
	x := &Derived{}
	return x, row.Scan(&x.Kind, &x.ID, &x.Name, &x.ProjectID, &x.CreatedAt, &x.Ended)
}
