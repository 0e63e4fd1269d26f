package billing

import (
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
)

// The accounts. What is debited is positive.
const (
	receivable    = "RECEIVABLE"     // what the tenant owes
	accrued       = "ACCRUED"        // what the tenant will owe when the period closes
	revenue       = "REVENUE"        // by meter
	credit        = "CREDIT"         // what the tenant has left of a grant
	promotion     = "PROMOTION"      // what grants cost the platform
	breakage      = "BREAKAGE"       // what expired of grants
	platformBorne = "PLATFORM_BORNE" // what the platform bears, by reason
	rounding      = "ROUNDING"       // between exact amounts and lines
)

// Kind is what a transaction of the ledger is for.
type Kind string

// The kinds.
const (
	Usage         Kind = "USAGE"
	Correction    Kind = "CORRECTION"
	Close         Kind = "CLOSE"
	Reopen        Kind = "REOPEN"
	CreditGranted Kind = "CREDIT_GRANTED"
	CreditUsed    Kind = "CREDIT_USED"
	CreditExpired Kind = "CREDIT_EXPIRED"
)

// entry is a side of a transaction.
type entry struct {
	account, dimension string
	amount             money.Decimal
	grant              ids.ID
	rating.Use
}

// posting is a transaction of the ledger.
type posting struct {
	id, tenant, project, run, statement, period ids.ID
	kind                                        Kind
	currency                                    string
	effective                                   time.Time
	// whose quantities and amounts are what changes; nil for none
	line    *rating.Line
	amount  money.Decimal
	entries []entry
}

func none[T ~string](text T) *string {
	if text == "" {
		return nil
	}
	plain := string(text)
	return &plain
}

// queue writes the posting.
func (p *posting) queue(batch *pgx.Batch) {
	line := p.line
	if line == nil {
		line = &rating.Line{}
	}
	batch.Queue(`INSERT INTO ledger_tx (id, tenant_id, project_id, kind, run_id, period_id, of_period_id, line_key,
		price_id, meter, unit, sku,
			region, borne, quantity, billed, amount, currency, effective_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
		p.id, p.tenant, none(p.project), string(p.kind), none(p.run), p.statement, p.period, none(line.Key),
		none(line.Price),
		none(line.Meter),
		none(line.Unit), none(line.SKU), none(line.Region), none(line.Borne), line.Quantity, line.Billed, p.amount,
		p.currency, p.effective)
	for n, e := range p.entries {
		batch.Queue(`INSERT INTO ledger_entry (tx_id, n, tenant_id, project_id, account, dimension, amount, currency,
			grant_id, instance_id,
				allocation_id, member_id, component_key, operation_id, volume_id)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
			$15)`, p.id, n, p.tenant, none(p.project), e.account,
			e.dimension, e.amount, p.currency, none(e.grant), none(e.Instance), none(e.Allocation), none(e.Member),
			none(e.Component), none(e.Operation), none(e.Volume))
	}
}

// posting is what a changed line changes in the ledger; nil when it is not priced, before or after.
func (c change) posting(p *Period, run *Run) *posting {
	delta := c.delta()
	if delta.Price == "" {
		return nil
	}
	out := &posting{id: derived(ids.LedgerTx, string(run.ID)+"|"+delta.Key), tenant: p.TenantID,
		project: ids.ID(delta.Project),
		run:     run.ID, statement: run.StatementID, period: p.ID, kind: Usage, currency: p.Currency,
		effective: run.EventTo,
		line:      delta,
		amount:    delta.Amount}
	if run.StatementID != p.ID {
		out.kind, out.effective = Correction, p.EndsAt.Add(-time.Microsecond) // in the period that it belongs to
	}
	owed := entry{account: accrued}
	if delta.Borne != "" {
		owed = entry{account: platformBorne, dimension: delta.Borne}
	}
	for _, share := range delta.Shares {
		one := owed
		one.amount, one.Use = share.Amount, share.Use
		out.entries = append(out.entries, one)
	}
	out.entries = append(out.entries, entry{account: revenue, dimension: delta.Meter, amount: delta.Exact.Neg()})
	if rest := delta.Exact.Sub(delta.Amount); !rest.IsZero() {
		out.entries = append(out.entries, entry{account: rounding, amount: rest})
	}
	return out
}

// delta is the line's change: quantities and amounts after, less those before; shares that do not change are left out.
func (c change) delta() *rating.Line {
	before, after := c.before, c.after
	if before == nil {
		before = &rating.Line{}
	}
	if after == nil {
		after = &rating.Line{Key: before.Key, Heading: before.Heading, Price: before.Price}
	}
	out := &rating.Line{Key: after.Key, Heading: after.Heading, Price: after.Price,
		Quantity: after.Quantity.Sub(before.Quantity), Billed: after.Billed.Sub(before.Billed),
		Exact: after.Exact.Sub(before.Exact), Amount: after.Amount.Sub(before.Amount)}
	amounts := map[rating.Use]money.Decimal{}
	for _, share := range after.Shares {
		amounts[share.Use] = share.Amount
	}
	for _, share := range before.Shares {
		amounts[share.Use] = amounts[share.Use].Sub(share.Amount)
	}
	for _, use := range slices.SortedFunc(maps.Keys(amounts), rating.Use.Compare) {
		if amount := amounts[use]; !amount.IsZero() {
			out.Shares = append(out.Shares, rating.Share{Use: use, Amount: amount})
		}
	}
	return out
}

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
