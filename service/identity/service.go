// Package identity holds the verbs on tenants, projects, people, roles, service accounts and logins.
package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	dbtenant "github.com/gpuaas/app-platform/ent/generated/db/tenant"
	dbuser "github.com/gpuaas/app-platform/ent/generated/db/user"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Service holds the verbs on identities.
type Service struct {
	DB *tx.DB
	// DevLogins allows login links: a login without an identity provider.
	DevLogins bool
	// KeyLife is the longest life of a service account's key, and the life of one that is created without an end; 0 for
	// no bound.
	KeyLife time.Duration
	// Keys signs the tokens that keys are exchanged for; nil where none are.
	Keys *token.Keyring
	// RotateAfter is how old a session's secret may get; 0 for the constant.
	RotateAfter time.Duration
	// PublicURL is the console's address, without a trailing slash.
	PublicURL string
}

// made is what an idempotency key stores.
type made struct {
	ID ids.ID `json:"id"`
}

// tenantOf loads a tenant that the caller may know of, or records the attempt and returns NOT_FOUND.
func tenantOf(ctx context.Context, t *tx.Tx, action string, key authz.Key, id ids.ID) (*db.Tenant, error) {
	row, err := t.Tenant.Query().Where(dbtenant.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, audit.Missing(t, action, key, id)
	}
	if err != nil {
		return nil, fmt.Errorf("load tenant %s: %w", id, err)
	}
	return row, nil
}

// projectOf loads a project that the caller may know of, or records the attempt and returns NOT_FOUND.
func projectOf(ctx context.Context, t *tx.Tx, action string, key authz.Key, id ids.ID) (*db.Project, error) {
	row, err := t.Project.Query().Where(dbproject.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, audit.Missing(t, action, key, id)
	}
	if err != nil {
		return nil, fmt.Errorf("load project %s: %w", id, err)
	}
	return row, nil
}

// userOf loads a person that the caller may know of, or records the attempt and returns NOT_FOUND.
func userOf(ctx context.Context, t *tx.Tx, action string, key authz.Key, id ids.ID) (*db.User, error) {
	row, err := t.User.Query().Where(dbuser.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, audit.Missing(t, action, key, id)
	}
	if err != nil {
		return nil, fmt.Errorf("load person %s: %w", id, err)
	}
	return row, nil
}

// gone reports whether a plain query found no row.
func gone(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
