package price

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/scope"
)

// Filter chooses prices of the book.
type Filter struct {
	// TenantID or ProjectID adds their own prices to those for everyone; nil for those for everyone alone.
	TenantID, ProjectID *ids.ID
	// Meter and SKU narrow the list; nil for all.
	Meter, SKU *string
	// At shows what is valid at an instant; nil shows what holds now and later.
	At *time.Time
}

// Versions reads prices of the book, by id, the newest first. Anyone who is logged in sees those for everyone; those
// of a tenant or project require billing.read there. NOT_FOUND for what the caller cannot see.
func (s *Service) Versions(ctx context.Context, filter Filter, args page.Args) (*page.Page[*Version], error) {
	const list = "prices"
	var after ids.ID
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	at := scope.Scope{TenantID: filter.TenantID, ProjectID: filter.ProjectID}
	var found []*Version
	actor, err := s.DB.Read(ctx, at.With(
		tx.Rows(&found, ScanVersion, `SELECT `+Columns+` FROM price_version
			WHERE superseded_xid IS NULL AND ($1::text IS NULL OR meter = $1) AND ($2::text IS NULL OR sku = $2)
				AND (valid_to IS NULL OR valid_to > coalesce($3, now())) AND ($3::timestamptz IS NULL OR valid_from <= $3)
				AND (tenant_id IS NULL OR project_id IS NULL AND tenant_id = coalesce($4::text, (SELECT p.tenant_id FROM project p
				WHERE p.id = $5))
					OR project_id = $5)
				AND ($6 = '' OR id < $6) ORDER BY id DESC LIMIT $7`,
			filter.Meter, filter.SKU, filter.At, filter.TenantID, filter.ProjectID, string(after), args.First+1))...)
	if err != nil {
		return nil, err
	}
	if filter.TenantID != nil || filter.ProjectID != nil {
		if err := at.Require(actor, authz.BillingRead); err != nil {
			return nil, err
		}
	}
	return page.Cut(args, found, func(v *Version) string { return page.Cursor(list, v.ID) }), nil
}
