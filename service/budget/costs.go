package budget

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/spending"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/scope"
)

// Share is a share of costs.
type Share struct {
	// Key is what it is of; empty for what has none. Name is for people.
	Key, Name, Currency string
	Amount              money.Decimal
}

// CostFilter chooses costs: a project's, a tenant's, or with neither the platform's.
type CostFilter struct {
	TenantID, ProjectID *ids.ID
	By                  spending.By
	// Label is the name of the label of spending.ByLabel.
	Label string
	// From is the beginning of this month when it is nil, and To now.
	From, To *time.Time
}

// grouping is how an entry's share is named; without a name it is its key.
type grouping struct{ key, name string }

const hourKey, dayKey = `to_char(x.effective_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:00:00"Z"')`,
	`to_char(x.effective_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')`

// groupings are the expressions of each way over an entry, with what it points at.
var groupings = map[spending.By]grouping{
	spending.ByTenant:   {`e.tenant_id`, `(SELECT t.display_name FROM tenant t WHERE t.id = e.tenant_id)`},
	spending.ByProject:  {`e.project_id`, `(SELECT p.display_name FROM project p WHERE p.id = e.project_id)`},
	spending.ByApp:      {key: `(SELECT i.app_slug FROM instance i WHERE i.id = e.instance_id)`},
	spending.ByMeter:    {key: `x.meter`},
	spending.ByInstance: {`e.instance_id`, `(SELECT i.name FROM instance i WHERE i.id = e.instance_id)`},
	spending.ByMember: {`e.member_id`, `(SELECT m.component_key || ' ' || m.ordinal FROM member m
		WHERE m.id = e.member_id)`},
	spending.ByOperation: {`e.operation_id`, `(SELECT o.kind FROM operation o WHERE o.id = e.operation_id)`},
	spending.ByVolume:    {`e.volume_id`, `(SELECT v.name FROM volume v WHERE v.id = e.volume_id)`},
	spending.ByPerson: {person, `coalesce((SELECT p.display_name FROM person p
		WHERE p.id = ` + person + `), (SELECT a.name FROM service_account a WHERE a.id = ` + person + `))`},
	spending.ByLabel: {key: `(SELECT m.labels ->> $6::text FROM member m WHERE m.id = e.member_id)`},
	spending.ByHour:  {key: hourKey},
	spending.ByDay:   {key: dayKey},
	spending.ByBorne: {key: `e.dimension`},
}

// person is who requested the capacity of an entry, launched the instance whose use it is, or created the volume.
const person = `coalesce((SELECT r.subject_id FROM allocation_requester r WHERE r.allocation_id = e.allocation_id),
	(SELECT v.created_by FROM volume v WHERE v.id = e.volume_id),
	(SELECT o.requester_id FROM operation o WHERE o.instance_id = e.instance_id AND o.kind = 'INSTANCE_CREATE'
	AND o.requester_kind <> 'SYSTEM' ORDER BY o.id LIMIT 1))`

// maxShares bounds the answer.
const maxShares = 1_000

// sqlOf is the statement of a way: sums of the ledger's entries, the platform's own where it bears them.
func sqlOf(b spending.By) string {
	g, account, order := groupings[b], "ACCRUED", "sum(q.amount) DESC, 1"
	if b == spending.ByBorne {
		account = "PLATFORM_BORNE"
	}
	if b == spending.ByHour || b == spending.ByDay {
		order = "1"
	}
	return `SELECT coalesce(q.key, ''), coalesce(min(q.name), q.key, ''), q.currency, sum(q.amount)
		FROM (SELECT ` + g.key + `, ` + cmp.Or(g.name, `NULL::text`) + `, e.currency, e.amount FROM ledger_entry e
		JOIN ledger_tx x ON x.id = e.tx_id AND x.kind IN ('USAGE', 'CORRECTION')
		WHERE e.account = '` + account + `' AND ($1::text IS NULL OR e.tenant_id = $1) AND ($2::text IS NULL OR e.project_id = $2)
			AND x.effective_at >= coalesce($3::timestamptz, ` +
		monthStart + `) AND x.effective_at <= coalesce($4::timestamptz,
			now()) AND $6::text IS NOT NULL
		) q (key, name, currency, amount) GROUP BY q.key, q.currency ORDER BY ` + order + ` LIMIT $5`
}

const monthStart = `date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'`

// Costs shares out what is booked. Key: billing.read on the project, on all of the tenant, or on the platform; by
// tenant and of what the platform bears only there. NOT_FOUND for what the caller cannot see.
func (s *Service) Costs(ctx context.Context, f CostFilter) ([]*Share, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	at := scope.Scope{TenantID: f.TenantID, ProjectID: f.ProjectID}
	out := []*Share{}
	actor, err := s.DB.Read(ctx, at.With(
		tx.Rows(&out, scanShare, sqlOf(f.By), f.TenantID, f.ProjectID, f.From, f.To, maxShares, f.Label))...)
	if err != nil {
		return nil, err
	}
	return out, f.may(actor, &at)
}

func (f *CostFilter) check() error {
	switch {
	case f.TenantID != nil && f.ProjectID != nil:
		return fault.New(fault.InvalidArgument, "name a tenant or a project, not both").At("tenantId")
	case f.By == spending.ByLabel && f.Label == "":
		return fault.New(fault.InvalidArgument, "label must be given to group by label").At("label")
	case f.From != nil && f.To != nil && !f.From.Before(*f.To):
		return fault.New(fault.InvalidArgument, "to must be after from").At("to")
	}
	return nil
}

// may requires billing.read where the filter looks.
func (f *CostFilter) may(actor *authz.Actor, at *scope.Scope) error {
	if f.ProjectID != nil || f.TenantID != nil {
		if err := at.Require(actor, authz.BillingRead); err != nil {
			return err
		}
		if f.By != spending.ByTenant && f.By != spending.ByBorne {
			return nil
		}
	}
	return authz.RequireOn(actor, authz.BillingRead, authz.Object{})
}

func scanShare(row pgx.CollectableRow) (*Share, error) {
	c := &Share{}
	return c, row.Scan(&c.Key, &c.Name, &c.Currency, &c.Amount)
}

// Summary is what costs this month, and is likely to.
type Summary struct {
	Currency string
	// From and To bound the month, half-open.
	From, To time.Time
	// Spent is what is booked, Hourly the price of an hour of what is rented, Forecast both until the month's end.
	Spent, Hourly, Forecast money.Decimal
	Unpriced                int
}

// summarySQL sums the month's entries and prices what is rented. A budget row that is stored nowhere carries the
// question.
const summarySQL = `WITH of AS (SELECT coalesce($1::text, (SELECT p.tenant_id FROM project p
	WHERE p.id = $2)) AS tenant),
	b AS (SELECT jsonb_populate_record(NULL::budget, jsonb_build_object('tenant_id', of.tenant, 'project_id', $2::text,
	'target_id', coalesce($2, of.tenant),
		'scope', CASE WHEN $2::text IS NULL THEN 'TENANT' ELSE 'PROJECT' END, 'currency',
		platform.billing_currency(of.tenant))) AS one FROM of)
	SELECT (b.one).currency, ` + monthStart + `, (` + monthStart + `) + interval '1 month', r.hourly,
	r.unpriced,
		coalesce((SELECT sum(e.amount) FROM ledger_entry e JOIN ledger_tx x ON x.id = e.tx_id
		AND x.kind IN ('USAGE', 'CORRECTION')
			JOIN billing_period p ON p.id = x.of_period_id AND p.starts_at = ` + monthStart + `
			WHERE e.account = 'ACCRUED' AND e.tenant_id = (b.one).tenant_id AND ($2::text IS NULL OR e.project_id = $2)
			AND e.currency = (b.one).currency), 0)
	FROM b CROSS JOIN LATERAL platform.budget_rate(b.one) r WHERE (b.one).currency IS NOT NULL`

// Summarise shows what a project or a tenant costs this month. Key: billing.read on all of it. NOT_FOUND for what the
// caller cannot see; FAILED_PRECONDITION before the tenant is billed in any currency.
func (s *Service) Summarise(ctx context.Context, tenantID, projectID *ids.ID) (*Summary, error) {
	at := scope.Scope{TenantID: tenantID, ProjectID: projectID}
	if err := at.One(); err != nil {
		return nil, err
	}
	var out *Summary
	actor, err := s.DB.Read(ctx, at.With(tx.Row(&out, scanSummary, summarySQL, tenantID, projectID))...)
	if err != nil {
		return nil, err
	}
	if err := at.Require(actor, authz.BillingRead); err != nil {
		return nil, err
	}
	if out == nil {
		return nil, fault.New(fault.FailedPrecondition,
			"the tenant has no billing account yet: the billing worker opens it within a minute; try again then")
	}
	out.foresee(s.DB.Now())
	return out, nil
}

func scanSummary(row pgx.CollectableRow) (*Summary, error) {
	c := &Summary{}
	return c, row.Scan(&c.Currency, &c.From, &c.To, &c.Hourly, &c.Unpriced, &c.Spent)
}

// foresee adds what is rented until the month's end at this hour's price.
func (c *Summary) foresee(now time.Time) {
	c.Forecast = c.Spent.Add(spending.OfHour(c.Hourly, max(c.To.Sub(now), 0)))
}
