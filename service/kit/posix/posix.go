// Package posix gives people and service accounts their POSIX identity in a tenant, at the first need.
package posix

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/posix"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Identity is what the programs of a tenant's apps see of a caller. It never changes, and is never another's.
type Identity struct {
	// Name is the name of the account, and of its group.
	Name string
	// UID is the account's id.
	UID int
	// GID is the id of the account's own group, which is the same number.
	GID int
}

// Own returns the caller's identity in a tenant, and gives it one where it has none yet. It is nil for callers that are
// neither a person nor a service account. Fault: FAILED_PRECONDITION where the tenant has given all its ids.
func Own(ctx context.Context, t *tx.Tx, tenant ids.ID) (*Identity, error) {
	if t.Actor.Kind != authz.KindUser && t.Actor.Kind != authz.KindServiceAccount {
		return nil, nil
	}
	found, err := scan(t.QueryRow(ctx, `SELECT name, uid FROM posix_identity WHERE tenant_id = $1 AND subject_id = $2`,
		tenant, t.Actor.ID))
	if err == nil {
		return found, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("read the POSIX identity of %s: %w", t.Actor.ID, err)
	}
	var called []string
	if err := t.QueryRow(ctx, `SELECT ARRAY[split_part(email, '@', 1), display_name] FROM person WHERE id = $1
		UNION ALL SELECT ARRAY[name] FROM service_account WHERE id = $1`, t.Actor.ID).Scan(&called); err != nil {
		return nil, fmt.Errorf("read the name of %s: %w", t.Actor.ID, err)
	}
	wished := posix.Name(called...)
	found, err = scan(t.QueryRow(ctx, `SELECT name, uid FROM platform.give_posix($1, $2, $3)`, tenant, wished,
		posix.IsReserved(wished)))
	if err != nil {
		return nil, fmt.Errorf("give %s a POSIX identity: %w", t.Actor.ID, err)
	}
	return found, nil
}

func scan(row pgx.Row) (*Identity, error) {
	found := new(Identity)
	err := row.Scan(&found.Name, &found.UID)
	found.GID = found.UID
	return found, err
}
