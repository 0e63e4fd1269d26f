// Package orphan lists what operations could not take back: what it is, whose it is, how old it is
// and what it costs; and it frees allocations once nothing is left in them.
package orphan

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

const (
	list        = "orphans" // names the cursors of lists
	ofInstances = 100       // open orphans that are shown of an instance
	secondsHour = 3_600
)

// Service holds the reads and verbs.
type Service struct {
	// DB is the database.
	DB *tx.DB
}

// View is an orphan as it is shown.
type View struct {
	*db.Orphan
	AgeSeconds            int
	HourlyCost, CostSoFar *Money // nil when the SKU has no price
}

// Money is an amount of money.
type Money struct {
	// Currency is its ISO 4217 code.
	Currency string
	// Amount is a decimal number.
	Amount string
}

// places are those of an amount.
const places = 6

// MoneyOf returns an amount of at most six places.
func MoneyOf(currency string, amount money.Decimal) *Money {
	return &Money{Currency: currency, Amount: amount.Fixed(places)}
}

// Filter chooses orphans of a list.
type Filter struct {
	ProjectID ids.ID
	// Resolved adds the orphans that are resolved.
	Resolved bool
}

// priced selects the columns of an orphan, and the price of what it holds.
const priced = `SELECT ` + rows.OrphanColumns + `, price.price_currency, price.price_hourly FROM orphan
	LEFT JOIN allocation held ON held.id = orphan.allocation_id
	LEFT JOIN LATERAL platform.hourly_now(held.tenant_id, held.project_id, platform.billing_currency(held.tenant_id),
	held.shape, held.gpu_count,
		held.sku, held.region) price ON held.id IS NOT NULL `

// scan reads a row of priced as it is shown at a moment.
func scan(now time.Time) func(row pgx.CollectableRow) (*View, error) {
	return func(row pgx.CollectableRow) (*View, error) {
		var currency *string
		var hourly *money.Decimal
		found, err := rows.Orphan(rows.Also{CollectableRow: row, Into: []any{&currency, &hourly}})
		if err != nil {
			return nil, err
		}
		view := &View{Orphan: found}
		end := now
		if view.ResolvedAt != nil {
			end = *view.ResolvedAt
		}
		view.AgeSeconds = max(int(end.Sub(view.CreatedAt)/time.Second), 0)
		if currency != nil && hourly != nil {
			view.HourlyCost = MoneyOf(*currency, *hourly)
			view.CostSoFar = MoneyOf(*currency, hourly.Mul(money.Int(int64(view.AgeSeconds))).
				Quotient(money.Int(secondsHour),
					places))
		}
		return view, nil
	}
}

func object(row *db.Orphan) authz.Object {
	return authz.Object{TenantID: row.TenantID, ProjectID: row.ProjectID, InstanceID: row.InstanceID}
}

// List reads orphans of a project, newest first. It requires operation.read; NOT_FOUND for a project
// that the caller cannot see.
func (s *Service) List(ctx context.Context, filter Filter, args page.Args) (*page.Page[*View], error) {
	var after ids.ID
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	sql := priced + `WHERE orphan.project_id = $1 AND ($2 = '' OR orphan.id < $2)`
	if !filter.Resolved {
		sql += ` AND orphan.resolved_at IS NULL`
	}
	var project *db.Project
	var found []*View
	actor, err := s.DB.Read(ctx,
		tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, filter.ProjectID),
		tx.Rows(&found, scan(s.DB.Now()), sql+` ORDER BY orphan.id DESC LIMIT $3`, filter.ProjectID, string(after),
			args.First+1))
	if err != nil {
		return nil, err
	}
	if project == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.RequireOn(actor, authz.OperationRead,
		authz.Object{TenantID: project.TenantID, ProjectID: project.ID}); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(v *View) string { return page.Cursor(list, v.ID) }), nil
}

// OfInstances reads what is still there of instances, oldest first, at most 100 each. The caller has
// authorised them.
func (s *Service) OfInstances(ctx context.Context, instances []ids.ID) (map[ids.ID][]*View, error) {
	var found []*View
	_, err := s.DB.Read(ctx, tx.Rows(&found, scan(s.DB.Now()),
		priced+`WHERE orphan.id IN (SELECT o.id FROM unnest($1::text[]) AS wanted (instance_id)
			CROSS JOIN LATERAL (SELECT id FROM orphan WHERE instance_id = wanted.instance_id AND resolved_at IS NULL ORDER BY id
			LIMIT $2) o)
			ORDER BY orphan.id`, instances, ofInstances))
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID][]*View, len(instances))
	for _, view := range found {
		out[view.InstanceID] = append(out[view.InstanceID], view)
	}
	return out, nil
}

// Get reads an orphan. It requires operation.read. NOT_FOUND when it is missing or hidden.
func (s *Service) Get(ctx context.Context, id ids.ID) (*View, error) {
	var found []*View
	actor, err := s.DB.Read(ctx, tx.Rows(&found, scan(s.DB.Now()), priced+`WHERE orphan.id = $1`, id))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fault.NoSuch()
	}
	return found[0], authz.RequireOn(actor, authz.OperationRead, object(found[0].Orphan))
}

// Retry makes an orphan due now: it is tried again as soon as its node reports. It requires
// operation.retry. Faults: NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION when it is already resolved.
func (s *Service) Retry(ctx context.Context, id ids.ID) (*View, error) {
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "retryOrphan"
		locked, err := tx.Collect(ctx, t, rows.Orphan, `SELECT `+rows.OrphanColumns+`
			FROM orphan WHERE id = $1 FOR UPDATE`, id)
		if err != nil {
			return fmt.Errorf("lock orphan %s: %w", id, err)
		}
		if len(locked) == 0 {
			return audit.Missing(t, action, authz.OperationRetry, id)
		}
		row := locked[0]
		if err := audit.Require(t, action, authz.OperationRetry, object(row), id); err != nil {
			return err
		}
		if row.ResolvedAt != nil {
			return fault.New(fault.FailedPrecondition, "the orphan is resolved already: %s",
				row.Resolution).At("orphanId")
		}
		if _, err := t.Exec(ctx, `UPDATE orphan SET next_try_at = $2 WHERE id = $1`, id, t.Now); err != nil {
			return fmt.Errorf("retry orphan %s: %w", id, err)
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.OperationRetry, Object: object(row),
			ObjectID: id, Before: map[string]any{"nextTryAt": row.NextTryAt, "attempts": row.Attempts},
			After: map[string]any{"nextTryAt": t.Now}})
	})
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, id)
}
