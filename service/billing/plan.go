package billing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/price"
)

// Change is what a plan would change in the books.
type Change struct {
	TenantID, ProjectID, PeriodID ids.ID
	Meter, SKU, Currency          string
	Before, After                 money.Decimal
}

// Plan is what a rerate or a reopening would change. The hash authorises just that.
type Plan struct {
	Hash    string
	Changes []*Change
}

// maxPlanned bounds the periods that one rerate may concern.
const maxPlanned = 1000

func (p *Plan) seal(subject any) error {
	encoded, err := json.Marshal([]any{subject, p.Changes})
	if err != nil {
		return fmt.Errorf("hash a plan: %w", err)
	}
	sum := sha256.Sum256(encoded)
	p.Hash = hex.EncodeToString(sum[:])
	return nil
}

func (p *Plan) compare(hash string) error {
	if p.Hash != hash {
		return fault.New(fault.PlanStale, "what the plan shows has changed: plan again").At("planHash")
	}
	return nil
}

// PlanRerate says what a price for a time that has passed would change. Key: sku.price.manage on the platform. Faults:
// INVALID_ARGUMENT naming the field, NOT_FOUND, LIMIT_EXCEEDED when it concerns more than 1,000 periods.
func (s *Service) PlanRerate(ctx context.Context, in price.VersionInput) (out *Plan, err error) {
	if err := checkPast(&in, s.DB.Now()); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		if err := price.Manage(ctx, t, "planRerate", &in); err != nil {
			return err
		}
		out, err = planRerate(ctx, t, in)
		return err
	})
	return out, err
}

func checkPast(in *price.VersionInput, now time.Time) error {
	if err := in.Check(); err != nil {
		return err
	}
	if in.ValidFrom == nil || !in.ValidFrom.Before(now) {
		return fault.New(fault.InvalidArgument,
			"validFrom must be in the past for a rerate: set it, or use setPrice").At("input.validFrom")
	}
	return nil
}

func planRerate(ctx context.Context, t *tx.Tx, in price.VersionInput) (*Plan, error) {
	version := in.Version(t.Now, t.Actor.Subject.ID)
	version.ID = "planned"
	version.Origin = version.ID
	periods, err := many(ctx, t, scanPeriod, `SELECT `+periodColumns+` FROM billing_period WHERE currency = $1
		AND starts_at < coalesce($3, now())
		AND ends_at > $2 AND ($4::text IS NULL OR tenant_id = $4) ORDER BY id
		LIMIT $5`, in.Currency, version.From, in.ValidTo, in.TenantID,
		maxPlanned+1)
	if err != nil {
		return nil, err
	}
	if len(periods) > maxPlanned {
		return nil, fault.New(fault.LimitExceeded,
			"the price concerns more than %d periods: set it for a shorter time or for one tenant", maxPlanned)
	}
	at, err := newMark(ctx, t)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Changes: []*Change{}}
	for _, p := range periods {
		if err := plan.rerate(ctx, t, p, version.Price, at); err != nil {
			return nil, err
		}
	}
	return plan, plan.seal([]any{in.Meter, in.SKU, in.Region, in.Currency, in.TenantID, in.ProjectID, in.ValidFrom,
		in.ValidTo, version.Terms})
}

// rerate adds what a period's books would change by with the price among the others.
func (p *Plan) rerate(ctx context.Context, t *tx.Tx, period *Period, added rating.Price, at mark) error {
	eventTo := earlier(t.Now, period.EndsAt)
	prices, err := pricesAt(ctx, t, period, eventTo, at)
	if err != nil {
		return err
	}
	before, err := rateWith(ctx, t, period, eventTo, at, prices)
	if err != nil {
		return err
	}
	after, err := rateWith(ctx, t, period, eventTo, at, placed(prices, added))
	if err != nil {
		return err
	}
	p.differ(period, before.Lines, after.Lines)
	return nil
}

// placed is the set of prices with one more, which cuts what is in its way.
func placed(prices []rating.Price, added rating.Price) []rating.Price {
	shelf := func(x rating.Price) [6]string {
		return [6]string{x.Meter, x.SKU, x.Region, x.Currency, string(x.Scope), x.Owner}
	}
	var same, out []rating.Price
	for _, x := range prices {
		if shelf(x) == shelf(added) {
			same = append(same, x)
		} else {
			out = append(out, x)
		}
	}
	placing, _ := rating.Place(same, added, true) // which cuts everything in its way
	for _, x := range same {
		if !slices.ContainsFunc(placing.Superseded, func(cut rating.Price) bool { return cut.ID == x.ID }) {
			out = append(out, x)
		}
	}
	for i := range placing.Kept {
		placing.Kept[i].ID = fmt.Sprintf("%s-%d", placing.Kept[i].ID, i)
	}
	return append(append(out, placing.Kept...), added)
}

// differ adds what differs between two ratings of a period, by what is shown: project, meter and SKU.
func (p *Plan) differ(period *Period, before, after []rating.Line) {
	type subject struct{ project, meter, sku string }
	sums := map[subject]*Change{}
	var order []subject
	add := func(l *rating.Line) *Change {
		key := subject{l.Project, l.Meter, l.SKU}
		if sums[key] == nil {
			order = append(order, key)
			sums[key] = &Change{TenantID: period.TenantID, ProjectID: ids.ID(l.Project), PeriodID: period.ID,
				Meter: l.Meter, SKU: l.SKU, Currency: period.Currency}
		}
		return sums[key]
	}
	for i := range before {
		change := add(&before[i])
		change.Before = change.Before.Add(before[i].Amount)
	}
	for i := range after {
		change := add(&after[i])
		change.After = change.After.Add(after[i].Amount)
	}
	for _, key := range order {
		if change := sums[key]; change.Before.Cmp(change.After) != 0 {
			p.Changes = append(p.Changes, change)
		}
	}
}

// Rerate puts a price for a time that has passed into the book, as planned; the next runs correct what is booked. Key:
// sku.price.manage on the platform. PLAN_STALE when the plan would show something else by now; else as PlanRerate.
func (s *Service) Rerate(ctx context.Context, in price.VersionInput) (out *price.Version, err error) {
	if err := checkPast(&in, s.DB.Now()); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "rerate"
		if err := price.Manage(ctx, t, action, &in); err != nil {
			return err
		}
		plan, err := planRerate(ctx, t, in)
		if err != nil {
			return err
		}
		if err := plan.compare(in.PlanHash); err != nil {
			return err
		}
		if out, err = price.Add(ctx, t, in.Version(t.Now, t.Actor.Subject.ID), true); err != nil {
			return err
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.SKUPriceManage, ObjectID: ids.ID(out.ID),
			After:  price.Shown(out),
			Before: map[string]any{"plan": plan.Hash, "changes": len(plan.Changes)}, Reason: in.Reason})
	})
	return out, err
}

// PlanReopen says what closing a closed period again would put into it by now. Key: billing.manage on the platform.
// NOT_FOUND; FAILED_PRECONDITION when it is not closed.
func (s *Service) PlanReopen(ctx context.Context, id ids.ID) (out *Plan, err error) {
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		_, out, err = planReopen(ctx, t, "planReopenPeriod", id)
		return err
	})
	return out, err
}

func planReopen(ctx context.Context, t *tx.Tx, action string, id ids.ID) (*Period, *Plan, error) {
	if err := audit.Require(t, action, authz.BillingManage, authz.Object{}, id); err != nil {
		return nil, nil, err
	}
	p, err := one(ctx, t, scanPeriod, `SELECT `+periodColumns+` FROM billing_period WHERE id = $1
		FOR NO KEY UPDATE`, id)
	if err != nil {
		return nil, nil, err
	}
	if p == nil {
		return nil, nil, audit.Missing(t, action, authz.BillingManage, id)
	}
	if p.Status != Closed {
		return nil, nil, fault.New(fault.FailedPrecondition,
			"the period is %s: only a closed one can be reopened", p.Status)
	}
	at, err := newMark(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	result, err := rate(ctx, t, p, p.EndsAt, at)
	if err != nil {
		return nil, nil, err
	}
	booked, err := lastLines(ctx, t, p.ID, maxRuns)
	if err != nil {
		return nil, nil, err
	}
	var before []rating.Line
	for _, key := range sortedKeys(booked) {
		before = append(before, *booked[key])
	}
	plan := &Plan{Changes: []*Change{}}
	plan.differ(p, before, result.Lines)
	return p, plan, plan.seal([]any{p.ID, p.ClosedAt})
}

// maxRuns is beyond every number of a run.
const maxRuns = 1 << 40

// Reopen opens a closed period again, as planned: what was owed is accrued again, late usage goes into it, and the next
// step of the billing worker closes it again. Key: billing.manage on the platform. PLAN_STALE; else as PlanReopen.
func (s *Service) Reopen(ctx context.Context, id ids.ID, planHash, reason string) (out *Period, err error) {
	wrong := &check.Input{}
	wrong.Text("reason", reason, 1, check.MaxReason)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "reopenPeriod"
		p, plan, err := planReopen(ctx, t, action, id)
		if err != nil {
			return err
		}
		if err := plan.compare(planHash); err != nil {
			return err
		}
		if err := reopen(ctx, t, p); err != nil {
			return err
		}
		out, err = one(ctx, t, scanPeriod, `SELECT `+periodColumns+` FROM billing_period WHERE id = $1`, id)
		if err != nil {
			return err
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.BillingManage,
			Object: authz.Object{TenantID: p.TenantID}, ObjectID: id,
			Before: map[string]any{"status": "CLOSED", "plan": plan.Hash}, After: map[string]any{"status": "CLOSING"},
			Reason: reason})
	})
	return out, err
}
