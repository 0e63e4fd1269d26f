package billing

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Grant is credit that a tenant was given.
type Grant struct {
	ID, TenantID ids.ID
	Currency     string
	// Amount is what was given, and Left what is left of it.
	Amount, Left money.Decimal
	// Priority is whose credit is used first: the lower.
	Priority  int
	ExpiresAt *time.Time
	Reason    string
	CreatedAt time.Time
}

// grantSQL reads grants with what is left of them.
const grantSQL = `SELECT g.id, g.tenant_id, g.currency, g.amount, g.priority, g.expires_at, g.reason,
	g.created_at,
	-coalesce((SELECT sum(e.amount) FROM ledger_entry e WHERE e.grant_id = g.id
	AND e.account = 'CREDIT'), 0) FROM credit_grant g `

func scanGrant(row pgx.CollectableRow) (*Grant, error) {
	g := &Grant{}
	return g, row.Scan(&g.ID, &g.TenantID, &g.Currency, &g.Amount, &g.Priority, &g.ExpiresAt, &g.Reason, &g.CreatedAt,
		&g.Left)
}

// expiredSQL is whether a grant has expired by $2, and no period that it may still pay for waits: one that ended
// before.
const expiredSQL = `g.expires_at <= $2 AND NOT EXISTS (SELECT FROM billing_period w WHERE w.tenant_id = g.tenant_id
	AND w.status <> 'CLOSED' AND w.ends_at < g.expires_at)`

// pay uses credit for what projects owe: the lowest priority first, then what expires first, then by id. What was valid
// as the period ended pays, however late it closes, and again when it was reopened.
func pay(ctx context.Context, t *tx.Tx, p *Period, turn int, sums []owing, batch *pgx.Batch) error {
	grants, err := many(ctx, t, scanGrant, grantSQL+`WHERE g.tenant_id = $1 AND g.currency = $2
		AND (g.expires_at IS NULL
		OR g.expires_at > $3)
		ORDER BY g.priority, g.expires_at NULLS LAST, g.id`, p.TenantID, p.Currency, p.EndsAt)
	if err != nil {
		return err
	}
	for _, g := range grants {
		for i := range sums {
			part := g.Left.Min(sums[i].amount)
			if part.Sign() <= 0 {
				continue
			}
			used := p.posting(CreditUsed, fmt.Sprintf("%s|credit|%d|%s|%s", p.ID, turn, sums[i].project, g.ID),
				sums[i].project, part.Neg(), t.Now)
			used.entries = []entry{{account: credit, amount: part, grant: g.ID},
				{account: receivable, amount: part.Neg()}}
			used.queue(batch)
			g.Left, sums[i].amount = g.Left.Sub(part), sums[i].amount.Sub(part)
		}
	}
	return nil
}

// GrantInput is credit for a tenant.
type GrantInput struct {
	TenantID  ids.ID
	Amount    money.Decimal
	Currency  string
	Priority  int
	ExpiresAt *time.Time
	Reason    string
	// IdempotencyKey makes a repeat harmless.
	IdempotencyKey string
}

// maxPriority bounds the priority of credit.
const maxPriority = 1000

func (in *GrantInput) check(now time.Time) error {
	wrong := &check.Input{}
	places, err := money.Minor(in.Currency)
	if err != nil {
		wrong.Bad("input.currency", "must be a currency of ISO 4217 in three capital letters")
	} else if in.Amount.Sign() <= 0 || in.Amount.Round(places).Cmp(in.Amount) != 0 {
		wrong.Bad("input.amount", "must be more than 0 and have at most %d places", places)
	}
	if in.Priority < 0 || in.Priority > maxPriority {
		wrong.Bad("input.priority", "must be 0 to %d", maxPriority)
	}
	wrong.Future("input.expiresAt", in.ExpiresAt, now)
	wrong.Text("input.reason", in.Reason, 1, check.MaxReason)
	return wrong.Err()
}

// GrantCredit gives a tenant credit, which pays of its statements as they close. Key: billing.manage on the platform.
// INVALID_ARGUMENT naming the field; NOT_FOUND; FAILED_PRECONDITION when the tenant is billed in another currency.
func (s *Service) GrantCredit(ctx context.Context, in GrantInput) (out *Grant, err error) {
	if err := in.check(s.DB.Now()); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "grantCredit"
		if err := audit.Require(t, action, authz.BillingManage, authz.Object{}, in.TenantID); err != nil {
			return err
		}
		p, err := current(ctx, t, in.TenantID)
		if err != nil {
			return err
		}
		if p.Currency != in.Currency {
			return fault.New(fault.FailedPrecondition, "the tenant is billed in %s", p.Currency).At("input.currency")
		}
		id := ids.New(ids.CreditGrant)
		repeated, err := idem.Claim(ctx, t, idem.Key{Verb: action, Value: in.IdempotencyKey, Input: in}, &id)
		if err == nil && repeated {
			out, err = one(ctx, t, scanGrant, grantSQL+`WHERE g.id = $1`, id)
		}
		if err != nil || repeated {
			return err
		}
		if out, err = grant(ctx, t, p, in, id); err != nil {
			return err
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.BillingManage,
			Object:   authz.Object{TenantID: in.TenantID},
			ObjectID: out.ID, Reason: in.Reason, After: map[string]any{"amount": in.Amount, "currency": in.Currency,
				"priority": in.Priority}})
	})
	return out, err
}

// current is openPeriod of a tenant that is there: NOT_FOUND otherwise.
func current(ctx context.Context, t *tx.Tx, tenant ids.ID) (*Period, error) {
	var known bool
	if err := t.QueryRow(ctx, `SELECT EXISTS (SELECT FROM tenant
		WHERE id = $1)`, tenant).Scan(&known); err != nil || !known {
		if err == nil {
			err = fault.NoSuch()
		}
		return nil, err
	}
	return openPeriod(ctx, t, tenant)
}

// openPeriod returns a tenant's open period. PERIOD_CLOSED when it has none.
func openPeriod(ctx context.Context, t *tx.Tx, tenant ids.ID) (*Period, error) {
	p, err := one(ctx, t, scanPeriod, `SELECT `+periodColumns+` FROM billing_period WHERE tenant_id = $1
		AND status = 'OPEN'
		ORDER BY starts_at DESC LIMIT 1`, tenant)
	if err == nil && p == nil {
		return nil, fault.New(fault.PeriodClosed,
			"the tenant has no open billing period: set its billing account, or wait for the billing worker")
	}
	return p, err
}

func grant(ctx context.Context, t *tx.Tx, p *Period, in GrantInput, id ids.ID) (*Grant, error) {
	batch := &pgx.Batch{}
	batch.Queue(`INSERT INTO credit_grant (id, tenant_id, currency, amount, priority, expires_at, reason)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		id, in.TenantID, in.Currency, in.Amount, in.Priority, in.ExpiresAt, in.Reason)
	given := p.posting(CreditGranted, string(id)+"|granted", "", money.Decimal{}, t.Now)
	given.entries = []entry{{account: promotion, amount: in.Amount},
		{account: credit, amount: in.Amount.Neg(), grant: id}}
	given.queue(batch)
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("give credit: %w", err)
	}
	return one(ctx, t, scanGrant, grantSQL+`WHERE g.id = $1`, id)
}

// Expire books what is left of a tenant's expired credit, and returns how many grants that were.
func Expire(ctx context.Context, t *tx.Tx, tenant ids.ID) (count int, err error) {
	if _, err := t.Exec(ctx, `SELECT FROM billing_account WHERE tenant_id = $1 FOR NO KEY UPDATE`, tenant); err != nil {
		return 0, fmt.Errorf("lock the account of %s: %w", tenant, err)
	}
	over, err := many(ctx, t, scanGrant, grantSQL+`WHERE g.tenant_id = $1 AND `+expiredSQL, tenant, t.Now)
	if err != nil {
		return 0, err
	}
	batch := &pgx.Batch{}
	for _, g := range over {
		if g.Left.Sign() <= 0 {
			continue
		}
		p, err := openPeriod(ctx, t, tenant)
		if err != nil {
			return 0, err
		}
		var times int // a reopened period gives back what may expire again
		if err := t.QueryRow(ctx, `SELECT count(*) FROM ledger_entry e JOIN ledger_tx x ON x.id = e.tx_id
			WHERE e.grant_id = $1 AND x.kind = 'CREDIT_EXPIRED'`,
			g.ID).Scan(&times); err != nil {
			return 0, fmt.Errorf("count what expired of %s: %w", g.ID, err)
		}
		gone := p.posting(CreditExpired, fmt.Sprintf("%s|expired|%d", g.ID, times), "", money.Decimal{}, t.Now)
		gone.entries = []entry{{account: credit, amount: g.Left, grant: g.ID},
			{account: breakage, amount: g.Left.Neg()}}
		gone.queue(batch)
		count++
	}
	return count, t.SendBatch(ctx, batch).Close()
}
