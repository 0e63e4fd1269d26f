package identity

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// maxDomains bounds the verified domains of a tenant.
const maxDomains = 50

// domainForm is a domain of addresses: labels of letters, digits and hyphens, two at least.
var domainForm = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$`)

// DomainsInput names the verified domains of a tenant's addresses.
type DomainsInput struct {
	TenantID ids.ID
	// Domains are all of them: those that are not named end.
	Domains []string
	Reason  string
}

// SetDomains sets which domains of addresses are the tenant's, as the platform's staff has verified: people of such an
// address need no invitation. A domain is one tenant's: CONFLICT at the domain names the tenant that has it, to staff,
// who see all. Key: tenant.create on the platform.
func (s *Service) SetDomains(ctx context.Context, in DomainsInput) (out *db.Tenant, err error) {
	for i, domain := range in.Domains {
		in.Domains[i] = strings.ToLower(strings.TrimSpace(domain))
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = setDomains(ctx, t, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (in DomainsInput) check() error {
	var input check.Input
	if len(in.Domains) > maxDomains {
		input.Bad("input.domains", "must have at most %d domains", maxDomains)
	}
	for i, domain := range in.Domains {
		switch path := fmt.Sprintf("input.domains.%d", i); {
		case len(domain) > 253 || !domainForm.MatchString(domain):
			input.Bad(path, "must be a domain, such as example.com")
		case slices.Contains(in.Domains[:i], domain):
			input.Bad(path, "%s is named twice", domain)
		}
	}
	input.Reason("input.reason", in.Reason)
	return input.Err()
}

func setDomains(ctx context.Context, t *tx.Tx, in DomainsInput) (*db.Tenant, error) {
	const action = "setTenantDomains"
	row, err := tenantOf(ctx, t, action, authz.TenantCreate, in.TenantID)
	if err != nil {
		return nil, err
	}
	object := authz.Object{TenantID: row.ID}
	if err := audit.Require(t, action, authz.TenantCreate, authz.Object{}, row.ID); err != nil {
		return nil, err
	}
	if row.Platform && len(in.Domains) > 0 {
		return nil, ofStaff("input.domains")
	}
	if err := freeDomains(ctx, t, in); err != nil {
		return nil, err
	}
	before := row.Domains
	if row, err = row.Update().SetDomains(append([]string{}, in.Domains...)).Save(ctx); err != nil {
		return nil, fmt.Errorf("set the domains of %s: %w", in.TenantID, err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.TenantCreate, Object: object,
		ObjectID: row.ID,
		Before:   map[string]any{"domains": before}, After: map[string]any{"domains": row.Domains}, Reason: in.Reason})
}

// freeDomains refuses domains that another tenant has. It waits for others that set domains.
func freeDomains(ctx context.Context, t *tx.Tx, in DomainsInput) error {
	if _, err := t.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('domains of tenants', 0))`); err != nil {
		return fmt.Errorf("wait for the domains of tenants: %w", err)
	}
	var slug, domain string
	err := t.QueryRow(ctx, `SELECT t.slug, d FROM tenant t, unnest($1::text[]) d WHERE t.id <> $2 AND t.domains ? d
		ORDER BY d LIMIT 1`, in.Domains, in.TenantID).
		Scan(&slug, &domain)
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find domains of other tenants: %w", err)
	}
	return fault.New(fault.Conflict, "%s is a domain of tenant %s: take it from that tenant first", domain, slug).
		At(fmt.Sprintf("input.domains.%d", slices.Index(in.Domains, domain))).Retry(false)
}
