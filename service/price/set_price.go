package price

import (
	"context"
	"regexp"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

var meterPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)

// VersionInput is a price for the book.
type VersionInput struct {
	// Meter is what is priced: a dimension of an app, a meter of capacity, or "capacity" for all of them.
	Meter string
	// SKU and Region narrow it; nil for any.
	SKU, Region *string
	Currency    string
	// TenantID or ProjectID is whom the price is for; nil for everyone.
	TenantID, ProjectID *ids.ID
	// ValidFrom is nil for now, ValidTo nil for ever.
	ValidFrom, ValidTo *time.Time
	Measure            rating.Measure
	Per                money.Decimal
	Tiers              []rating.Tier
	Minimum, RoundUpTo *money.Decimal
	// PlanHash is that of the plan of a rerate.
	PlanHash string `json:"-"`
	Reason   string
}

// Check finds what is wrong with the input, by field.
func (in *VersionInput) Check() error {
	wrong := &check.Input{}
	if !meterPattern.MatchString(in.Meter) {
		wrong.Bad("input.meter",
			"must be letters, digits, dot, dash and underscore, at most 64, and start with a letter")
	}
	for path, value := range map[string]*string{"input.sku": in.SKU, "input.region": in.Region} {
		if value != nil && !skuPattern.MatchString(*value) {
			wrong.Bad(path, "must be letters, digits, dot, dash and underscore, at most 64")
		}
	}
	if _, err := money.Minor(in.Currency); err != nil {
		wrong.Bad("input.currency", "must be a currency of ISO 4217 in three capital letters")
	}
	if in.ValidFrom != nil && in.ValidTo != nil && !in.ValidFrom.Before(*in.ValidTo) {
		wrong.Bad("input.validTo", "must be after validFrom")
	}
	wrong.Text("input.reason", in.Reason, 1, check.MaxReason)
	terms := in.terms()
	terms.Check(func(path, format string, args ...any) { wrong.Bad("input."+path, format, args...) })
	return wrong.Err()
}

func (in *VersionInput) terms() rating.Terms {
	out := rating.Terms{Measure: in.Measure, Per: in.Per, Tiers: in.Tiers}
	if in.Minimum != nil {
		out.Minimum = *in.Minimum
	}
	if in.RoundUpTo != nil {
		out.RoundUpTo = *in.RoundUpTo
	}
	return out
}

// Version is the input as a version that begins now unless it says otherwise.
func (in *VersionInput) Version(now time.Time, by ids.ID) Version {
	out := Version{TenantID: in.TenantID, ProjectID: in.ProjectID, Reason: in.Reason, CreatedBy: string(by)}
	out.Price = rating.Price{Meter: in.Meter, SKU: text(in.SKU), Region: text(in.Region), Currency: in.Currency,
		Scope: rating.Platform, From: now, Terms: in.terms()}
	if in.ValidFrom != nil {
		out.From = in.ValidFrom.UTC().Truncate(time.Microsecond)
	}
	if in.ValidTo != nil {
		out.To = in.ValidTo.UTC().Truncate(time.Microsecond)
	}
	switch {
	case in.ProjectID != nil:
		out.Scope, out.Owner = rating.Project, string(*in.ProjectID)
	case in.TenantID != nil:
		out.Scope, out.Owner = rating.Tenant, string(*in.TenantID)
	}
	return out
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// SetVersion puts a price into the book, from now or a later instant on. What was valid for ever before ends there.
// Key: sku.price.manage on the platform. Faults: INVALID_ARGUMENT naming the field, NOT_FOUND for its tenant or
// project, PRICE_RETROACTIVE, PRICE_OVERLAP.
func (s *Service) SetVersion(ctx context.Context, in VersionInput) (out *Version, err error) {
	if err := in.Check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "setPrice"
		if err := Manage(ctx, t, action, &in); err != nil {
			return err
		}
		version := in.Version(t.Now, t.Actor.Subject.ID)
		if version.From.Before(t.Now) {
			return fault.New(fault.PriceRetroactive, "validFrom is in the past: plan a rerate").At("input.validFrom")
		}
		if !version.To.IsZero() && !version.From.Before(version.To) {
			return fault.New(fault.InvalidArgument, "validTo must be after validFrom").At("input.validTo")
		}
		if out, err = Add(ctx, t, version, false); err != nil {
			return err
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.SKUPriceManage, ObjectID: ids.ID(out.ID),
			After:  Shown(out),
			Reason: in.Reason})
	})
	return out, err
}

// Manage requires sku.price.manage, checks that the tenant or project exists, and completes a project's tenant.
func Manage(ctx context.Context, t *tx.Tx, action string, in *VersionInput) error {
	if err := audit.Require(t, action, authz.SKUPriceManage, authz.Object{}, ""); err != nil {
		return err
	}
	var tenant *ids.ID
	switch {
	case in.ProjectID != nil:
		err := t.QueryRow(ctx, `SELECT (SELECT tenant_id FROM project WHERE id = $1)`, *in.ProjectID).Scan(&tenant)
		if err != nil || tenant == nil || in.TenantID != nil && *tenant != *in.TenantID {
			return missing(err, "input.projectId")
		}
		in.TenantID = tenant
	case in.TenantID != nil:
		err := t.QueryRow(ctx, `SELECT (SELECT id FROM tenant WHERE id = $1)`, *in.TenantID).Scan(&tenant)
		if err != nil || tenant == nil {
			return missing(err, "input.tenantId")
		}
	}
	return nil
}

func missing(err error, path string) error {
	if err != nil {
		return err
	}
	return fault.NoSuch().At(path)
}

// Shown is what the audit keeps of a price.
func Shown(v *Version) map[string]any {
	return map[string]any{"meter": v.Meter, "sku": v.SKU, "region": v.Region, "currency": v.Currency, "scope": v.Scope,
		"owner": v.Owner, "validFrom": v.From, "terms": v.Terms, "hash": v.Hash, "version": v.Number}
}
