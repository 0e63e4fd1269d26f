package identity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/service/kit/check"
)

// bootstrapLock is the advisory lock that lets one bootstrap run at a time.
const bootstrapLock = 7305119090

// Bootstrapped is the first platform operator with a one-time login.
type Bootstrapped struct {
	UserID ids.ID
	// Code is for POST /auth/login, in development or not; it is stored nowhere.
	Code      string
	ExpiresAt time.Time
	// Created is false when the operator was there already and only got a fresh code.
	Created bool
}

// Bootstrap creates the first platform operator, from whom all other authority comes, and a one-time login code. dsn is
// an administrator's address of the migrated database; everything is written as the owner of its tables. Run again for
// the same address it returns a new code; FAILED_PRECONDITION when another operator exists. That a tenant has a person
// of the address makes no difference.
func Bootstrap(ctx context.Context, dsn, email, name string) (*Bootstrapped, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	var input check.Input
	input.Email("email", email)
	input.Text("name", name, 1, 100)
	if err := input.Err(); err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("connect as administrator: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var out *Bootstrapped
	err = pgx.BeginFunc(ctx, conn, func(t pgx.Tx) error {
		out, err = bootstrap(ctx, t, email, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func bootstrap(ctx context.Context, t pgx.Tx, email, name string) (*Bootstrapped, error) {
	if _, err := t.Exec(ctx, `SET LOCAL ROLE app_owner`); err != nil {
		return nil, fmt.Errorf("become the owner of the tables: %w", err)
	}
	if _, err := t.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, bootstrapLock); err != nil {
		return nil, fmt.Errorf("wait for another bootstrap: %w", err)
	}
	operator, err := operatorBy(ctx, t, email)
	if err != nil {
		return nil, err
	}
	var now time.Time
	if err := t.QueryRow(ctx, `SELECT now()`).Scan(&now); err != nil {
		return nil, fmt.Errorf("read the database's clock: %w", err)
	}
	out := &Bootstrapped{UserID: operator, ExpiresAt: now.UTC().Add(codeTTL)}
	if operator == "" {
		out.Created = true
		if out.UserID, err = makeOperator(ctx, t, email, name); err != nil {
			return nil, err
		}
	}
	text, secret := token.Mint(token.Bootstrap)
	if _, err := t.Exec(ctx, insertCode, secret.ID, out.UserID, secret.Hash, out.ExpiresAt, now); err != nil {
		return nil, fmt.Errorf("create login code: %w", err)
	}
	out.Code = text
	return out, auditBootstrap(ctx, t, out, secret.ID)
}

// operatorBy returns the operator of that address; empty when no operator exists.
func operatorBy(ctx context.Context, t pgx.Tx, email string) (ids.ID, error) {
	var id ids.ID
	var same bool
	err := t.QueryRow(ctx, `SELECT p.id, p.email = $2 FROM role_binding b JOIN person p ON p.id = b.user_id
		WHERE b.role = $1 AND b.tenant_id IS NULL AND b.revoked_at IS NULL AND (b.expires_at IS NULL OR b.expires_at > now())
		ORDER BY p.email = $2 DESC LIMIT 1`, authz.PlatformOperator, email).Scan(&id, &same)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("find an operator: %w", err)
	case !same:
		return "", fault.New(fault.FailedPrecondition,
			"a platform operator exists already: ask them for the role, or give their address").At("email")
	}
	return id, nil
}

// makeOperator creates the person, unless staff of that address is there, and binds the role.
func makeOperator(ctx context.Context, t pgx.Tx, email, name string) (ids.ID, error) {
	var id ids.ID
	err := t.QueryRow(ctx, `INSERT INTO person (id, email, display_name, created_at) VALUES ($1, $2, $3, now())
		ON CONFLICT (email) WHERE tenant_id IS NULL DO UPDATE SET email = excluded.email
		RETURNING id`, ids.New(ids.User), email, name).Scan(&id)
	if err != nil {
		return "", fmt.Errorf("create the operator: %w", err)
	}
	_, err = t.Exec(ctx, `INSERT INTO role_binding (id, user_id, role, granted_by, created_at)
		VALUES ($1, $2, $3, 'bootstrap', now())`,
		ids.New(ids.RoleBinding), id, authz.PlatformOperator)
	if err != nil {
		return "", fmt.Errorf("bind the operator: %w", err)
	}
	return id, nil
}

func auditBootstrap(ctx context.Context, t pgx.Tx, out *Bootstrapped, code ids.ID) error {
	_, err := t.Exec(ctx, `INSERT INTO audit_entry (id, actor_kind, actor_id, actor_name, permission_key, action,
		allowed, object_id,
		after, correlation_id, created_at) VALUES ($1, 'SYSTEM', 'system', 'bootstrap', $2, 'bootstrap', true, $3,
		jsonb_build_object('created', $4::boolean, 'code', $5::text), 'bootstrap', now())`,
		ids.New(ids.Audit), authz.BindingGrant.String(), out.UserID, out.Created, code)
	if err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	return nil
}
