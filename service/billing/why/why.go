// Package why explains a line of a statement to the cent: what booked it, whose it is, the usage records that it
// counts, the operations that brought their members, and who requested those.
package why

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/billing"
	"github.com/gpuaas/app-platform/service/usage"
)

// Bounds of an explanation.
const (
	maxBookings = 500
	maxShares   = 500
	maxRecords  = 1_000
)

// Explanation is why a line costs what it costs.
type Explanation struct {
	Key                     string
	ProjectID, PeriodID     ids.ID
	Meter, Unit             string
	SKU, Region             string
	PriceID                 *ids.ID
	Currency                string
	Quantity, Billed, Exact money.Decimal
	// Amount is the sum of the bookings, and of the shares; nil when nothing is priced.
	Amount   *money.Decimal
	Bookings []*Booking
	// Shares are whose it is, the dearest first, of ShareCount in all.
	Shares     []*Share
	ShareCount int
	// Records are what was counted, the newest first, of RecordCount in all.
	Records     []*usage.Record
	RecordCount int

	heading rating.Heading
}

// Booking is a transaction of the ledger.
type Booking struct {
	ID                       ids.ID
	Correction               bool
	RunID, StatementID       ids.ID
	Quantity, Billed, Amount money.Decimal
	EffectiveAt, BookedAt    time.Time
	// Run is what the booking was computed from; nil for callers that do not see the whole tenant.
	Run *billing.Run
}

// Share is what a member, and the operation that brought it, or a volume have of the line.
type Share struct {
	InstanceID, AllocationID, MemberID, OperationID, VolumeID *ids.ID
	ComponentKey                                              *string
	Quantity, Billed, Amount                                  money.Decimal
	// Operation is what brought the member; nil where no operation did, or the caller does not see it.
	Operation *Operation
}

// Question names a line: of a project, in the period that its usage belongs to.
type Question struct {
	ProjectID, PeriodID ids.ID
	Key                 string
	// Records is how many records are listed, 1 to 1,000.
	Records int
}

// Line explains a line. Keys: billing.read and usage.read on the project; callers with audit.read see who requested an
// operation. Faults: NOT_FOUND for what the caller cannot see, INVALID_ARGUMENT at records.
func Line(ctx context.Context, db *tx.DB, q Question) (out *Explanation, err error) {
	if q.Records < 1 || q.Records > maxRecords {
		return nil, fault.New(fault.InvalidArgument, "records must be 1 to %d", maxRecords).At("records")
	}
	err = db.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		if err := require(ctx, t, q.ProjectID); err != nil {
			return err
		}
		period, err := billing.PeriodOf(ctx, t, q.PeriodID, q.ProjectID)
		if err != nil {
			return err
		}
		if out, err = read(ctx, t, q, period); err != nil {
			return err
		}
		if err := out.bookings(ctx, t); err != nil {
			return err
		}
		if err := out.records(ctx, t, period, q.Records); err != nil {
			return err
		}
		return out.operations(ctx, t)
	})
	return out, err
}

// require refuses a caller without the keys on the project.
func require(ctx context.Context, t *tx.Tx, project ids.ID) error {
	var tenant *ids.ID
	if err := t.QueryRow(ctx, `SELECT (SELECT tenant_id FROM project
		WHERE id = $1)`, project).Scan(&tenant); err != nil {
		return fmt.Errorf("read project %s: %w", project, err)
	}
	if tenant == nil {
		return fault.NoSuch()
	}
	for _, key := range []authz.Key{authz.BillingRead, authz.UsageRead} {
		if err := authz.Require(t.Actor, key, *tenant, project); err != nil {
			return err
		}
	}
	return nil
}

// read reads the line as the last run left it. What the platform bears is not a line of any tenant.
func read(ctx context.Context, t *tx.Tx, q Question, period *billing.Period) (*Explanation, error) {
	var stored *string
	err := t.QueryRow(ctx, `SELECT (SELECT line FROM billing_line WHERE period_id = $1 AND project_id = $2 AND key = $3
		ORDER BY seq DESC LIMIT 1)`,
		q.PeriodID, q.ProjectID, q.Key).Scan(&stored)
	if err != nil {
		return nil, fmt.Errorf("read a line: %w", err)
	}
	var line rating.Line
	if stored == nil || *stored == "" {
		return nil, fault.NoSuch()
	}
	if err := json.Unmarshal([]byte(*stored), &line); err != nil {
		return nil, fmt.Errorf("read a line: %w", err)
	}
	if line.Borne != "" {
		return nil, fault.NoSuch()
	}
	out := &Explanation{Key: line.Key, ProjectID: q.ProjectID, PeriodID: q.PeriodID, Meter: line.Meter, Unit: line.Unit,
		SKU:    line.SKU,
		Region: line.Region, Currency: period.Currency, Quantity: line.Quantity, Billed: line.Billed, Exact: line.Exact,
		heading: line.Heading}
	if line.Price != "" {
		price := ids.ID(line.Price)
		out.PriceID, out.Amount = &price, &line.Amount
	}
	out.shares(line.Shares)
	return out, nil
}

// shares lists the line's shares, the dearest first.
func (e *Explanation) shares(of []rating.Share) {
	e.ShareCount, e.Shares = len(of), []*Share{}
	slices.SortStableFunc(of, func(a, b rating.Share) int { return b.Amount.Cmp(a.Amount) })
	for _, share := range of[:min(len(of), maxShares)] {
		e.Shares = append(e.Shares, &Share{InstanceID: named[ids.ID](share.Instance),
			AllocationID: named[ids.ID](share.Allocation), MemberID: named[ids.ID](share.Member),
			OperationID: named[ids.ID](share.Operation), VolumeID: named[ids.ID](share.Volume),
			ComponentKey: named[string](share.Component), Quantity: share.Quantity,
			Billed: share.Billed, Amount: share.Amount})
	}
}

// named is text that may be missing.
func named[T ~string](text string) *T {
	if text == "" {
		return nil
	}
	out := T(text)
	return &out
}

// bookings reads what booked the line, the newest first, and the runs that did.
func (e *Explanation) bookings(ctx context.Context, t *tx.Tx) error {
	rows, err := t.Query(ctx, `SELECT id, kind = 'CORRECTION', run_id, period_id, quantity,
		billed, amount,
			effective_at, booked_at FROM ledger_tx WHERE of_period_id = $1 AND project_id = $2 AND line_key = $3
			AND kind IN ('USAGE', 'CORRECTION')
		ORDER BY booked_at DESC, id LIMIT $4`, e.PeriodID, e.ProjectID, e.Key, maxBookings)
	if err != nil {
		return fmt.Errorf("read bookings: %w", err)
	}
	if e.Bookings, err = pgx.CollectRows(rows, scanBooking); err != nil {
		return fmt.Errorf("read bookings: %w", err)
	}
	runs, err := billing.RunsOf(ctx, t, e.PeriodID)
	for _, booking := range e.Bookings {
		booking.Run = runs[booking.RunID]
	}
	return err
}

func scanBooking(row pgx.CollectableRow) (*Booking, error) {
	b := &Booking{}
	return b, row.Scan(&b.ID, &b.Correction, &b.RunID, &b.StatementID, &b.Quantity, &b.Billed, &b.Amount,
		&b.EffectiveAt, &b.BookedAt)
}

// records reads the usage that the line counts: what was used while its price applied, as the last run saw both.
func (e *Explanation) records(ctx context.Context, t *tx.Tx, period *billing.Period, most int) error {
	engine, last, err := billing.EngineOf(ctx, t, period)
	if err != nil {
		return err
	}
	line := &usage.Line{Heading: e.heading}
	if last != nil {
		line.Generation, line.Watermark = &last.Generation, &last.Watermark
	}
	price := ""
	if e.PriceID != nil {
		price = string(*e.PriceID)
	}
	capacity := slices.Contains([]string{metering.GPUSeconds, metering.NodeSeconds}, e.Meter)
	line.Spans = engine.Spans(e.heading, capacity, price)
	e.Records, e.RecordCount, err = usage.Of(ctx, t, line, most)
	return err
}
