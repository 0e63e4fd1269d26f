package billing

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/scope"
)

// Line is a line of a statement: what a project used of one thing under one price, and what it costs.
type Line struct {
	Key       string
	ProjectID ids.ID
	// From and To are the period that the usage belongs to. In a correction it is an earlier one than the statement's.
	From, To   time.Time
	Correction bool
	Meter      string
	Unit       string
	SKU        string
	Region     string
	// PriceID is the price; nil when nothing is priced, and then Amount is nil too.
	PriceID *ids.ID
	// Quantity is what was used, and Billed what is paid for.
	Quantity, Billed money.Decimal
	Amount           *money.Decimal
}

// Statement is what a tenant, or a project of it, owes for a period.
type Statement struct {
	Period    *Period
	TenantID  ids.ID
	ProjectID *ids.ID
	// Final is true when the period is closed.
	Final bool
	Lines []*Line
	// Charges is the sum of the lines, Credits what was paid of it with credit, and Total what is left.
	Charges, Credits, Total money.Decimal
	// Unpriced counts the lines without a price, which are in no sum.
	Unpriced int
	// Names are the display names of the tenant and of its projects, as far as the caller sees them.
	Names map[ids.ID]string
}

// name is what something is called.
type name struct {
	ID   ids.ID
	Name string
}

// Filter chooses a statement: of a tenant or of a project, of a period or of the present one.
type Filter struct{ TenantID, ProjectID, PeriodID *ids.ID }

// statementSQL sums the ledger by line. Lines without a price are in no ledger: the period's last run says them.
const statementSQL = `SELECT line_key, x.project_id, o.starts_at, o.ends_at, x.kind = 'CORRECTION', x.meter,
	coalesce(x.unit, ''), coalesce(x.sku, ''),
		coalesce(x.region, ''), x.price_id, sum(x.quantity), sum(x.billed), sum(x.amount)
	FROM ledger_tx x JOIN billing_period o ON o.id = x.of_period_id
	WHERE x.period_id = $1 AND x.kind IN ('USAGE', 'CORRECTION') AND x.borne IS NULL AND ($2::text IS NULL OR x.project_id = $2)
	GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
	UNION ALL SELECT l.key, l.project_id, p.starts_at, p.ends_at, false, j ->> 'meter', coalesce(j ->> 'unit', ''), coalesce(j ->> 'sku', ''),
		coalesce(j ->> 'region', ''), NULL, (j ->> 'quantity')::numeric, (j ->> 'billed')::numeric, NULL
	FROM (SELECT DISTINCT ON (key) * FROM billing_line WHERE period_id = $1 AND ($2::text IS NULL OR project_id = $2) ORDER BY key, seq DESC) l
	JOIN billing_period p ON p.id = l.period_id CROSS JOIN LATERAL (SELECT nullif(l.line, '')::jsonb AS j) v
	WHERE j IS NOT NULL AND NOT j ? 'price' AND NOT j ? 'borne'
	ORDER BY 2, 5, 3, 6, 8, 9, 1`

func scanLine(row pgx.CollectableRow) (*Line, error) {
	l := &Line{}
	return l, row.Scan(&l.Key, &l.ProjectID, &l.From, &l.To, &l.Correction, &l.Meter, &l.Unit, &l.SKU, &l.Region,
		&l.PriceID, &l.Quantity,
		&l.Billed, &l.Amount)
}

// Statement reads a statement. Key: billing.read on the project, or on all of the tenant. NOT_FOUND for what the caller
// cannot see.
func (s *Service) Statement(ctx context.Context, filter Filter) (*Statement, error) {
	at := scope.Scope{TenantID: filter.TenantID, ProjectID: filter.ProjectID}
	if err := at.One(); err != nil {
		return nil, err
	}
	var period *Period
	actor, err := s.DB.Read(ctx, at.With(
		tx.Row(&period, scanPeriod, `SELECT `+periodColumns+` FROM billing_period
			WHERE tenant_id = coalesce($1::text, (SELECT tenant_id FROM project WHERE id = $2)) AND ($3::text IS NULL OR id = $3)
			ORDER BY starts_at DESC LIMIT 1`, filter.TenantID, filter.ProjectID, filter.PeriodID))...)
	if err != nil {
		return nil, err
	}
	if err := at.Require(actor, authz.BillingRead); err != nil {
		return nil, err
	}
	if period == nil {
		return nil, fault.NoSuch()
	}
	return s.sum(ctx, &Statement{Period: period, TenantID: period.TenantID, ProjectID: filter.ProjectID,
		Final: period.Status == Closed})
}

// sum reads the lines and adds them up.
func (s *Service) sum(ctx context.Context, out *Statement) (*Statement, error) {
	var paid []owing
	var names []name
	_, err := s.DB.Read(ctx, tx.Rows(&names, pgx.RowToStructByPos[name], `SELECT id, display_name FROM tenant
		WHERE id = $1
		UNION ALL SELECT id, display_name FROM project WHERE tenant_id = $1
		AND ($2::text IS NULL OR id = $2)`, out.TenantID,
		out.ProjectID), tx.Rows(&out.Lines, scanLine, statementSQL, out.Period.ID, out.ProjectID),
		tx.Rows(&paid, scanOwing, `SELECT x.project_id, sum(e.amount) FROM ledger_tx x
			JOIN ledger_entry e ON e.tx_id = x.id
			WHERE x.period_id = $1 AND x.kind IN ('CREDIT_USED', 'REOPEN') AND e.account = 'CREDIT' AND ($2::text IS NULL OR x.project_id = $2)
			GROUP BY x.project_id`, out.Period.ID, out.ProjectID))
	if err != nil {
		return nil, err
	}
	out.Names = make(map[ids.ID]string, len(names))
	for _, one := range names {
		out.Names[one.ID] = one.Name
	}
	for _, line := range out.Lines {
		if line.Amount == nil {
			out.Unpriced++
			continue
		}
		out.Charges = out.Charges.Add(*line.Amount)
	}
	for _, part := range paid {
		out.Credits = out.Credits.Add(part.amount)
	}
	out.Total = out.Charges.Sub(out.Credits)
	return out, nil
}
