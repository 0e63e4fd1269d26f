package billing

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Account is how a tenant is billed.
type Account struct {
	TenantID     ids.ID
	Currency     string
	GraceSeconds int
	UpdatedAt    time.Time
}

// AccountInput sets how a tenant is billed.
type AccountInput struct {
	TenantID     ids.ID
	Currency     string
	GraceSeconds int
	Reason       string
}

// maxGrace bounds how long a period waits for late usage.
const maxGrace = 30 * 24 * time.Hour

func (in *AccountInput) check() error {
	wrong := &check.Input{}
	if _, err := money.Minor(in.Currency); err != nil {
		wrong.Bad("input.currency", "must be a currency of ISO 4217 in three capital letters")
	}
	if in.GraceSeconds < 0 || in.GraceSeconds > int(maxGrace/time.Second) {
		wrong.Bad("input.graceSeconds", "must be 0 to %d", int(maxGrace/time.Second))
	}
	wrong.Text("input.reason", in.Reason, 1, check.MaxReason)
	return wrong.Err()
}

// SetAccount sets in which currency a tenant is billed, and how long its periods wait for late usage, from the next
// period on: those that are open keep theirs. Key: billing.manage on the platform. INVALID_ARGUMENT naming the field;
// NOT_FOUND; PRICE_MISSING when the book has no price in the currency.
func (s *Service) SetAccount(ctx context.Context, in AccountInput) (out *Account, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "setBillingAccount"
		if err := audit.Require(t, action, authz.BillingManage, authz.Object{}, in.TenantID); err != nil {
			return err
		}
		if err := priced(ctx, t, &in); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `INSERT INTO billing_account (tenant_id, currency, grace_seconds, updated_at)
			VALUES ($1, $2, $3, $4)
			ON CONFLICT (tenant_id) DO UPDATE SET currency = $2, grace_seconds = $3,
			updated_at = $4`, in.TenantID, in.Currency,
			in.GraceSeconds, t.Now); err != nil {
			return fmt.Errorf("set the account of %s: %w", in.TenantID, err)
		}
		if err := Advance(ctx, t, in.TenantID, Standard{}); err != nil {
			return err
		}
		out = &Account{TenantID: in.TenantID, Currency: in.Currency, GraceSeconds: in.GraceSeconds, UpdatedAt: t.Now}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.BillingManage,
			Object:   authz.Object{TenantID: in.TenantID},
			ObjectID: in.TenantID, Reason: in.Reason, After: map[string]any{"currency": in.Currency,
				"graceSeconds": in.GraceSeconds}})
	})
	return out, err
}

// priced looks that the tenant is there, and that something has a price in the currency.
func priced(ctx context.Context, t *tx.Tx, in *AccountInput) error {
	var known, own, any bool
	err := t.QueryRow(ctx, `SELECT EXISTS (SELECT FROM tenant WHERE id = $1), EXISTS (SELECT FROM tenant WHERE id = $1
		AND platform), EXISTS (SELECT FROM price_version
		WHERE currency = $2
		AND superseded_xid IS NULL AND (tenant_id IS NULL
		OR tenant_id = $1))`, in.TenantID, in.Currency).Scan(&known, &own, &any)
	switch {
	case err != nil:
		return fmt.Errorf("find prices in %s: %w", in.Currency, err)
	case !known:
		return fault.NoSuch()
	case own:
		return fault.New(fault.FailedPrecondition,
			"the platform's own tenant is not billed: the platform bears what it uses").At("input.tenantId")
	case !any:
		return fault.New(fault.PriceMissing, "the price book has no price in %s", in.Currency).At("input.currency")
	}
	return nil
}
