// Package price holds the price book, and the list prices of SKUs that are read from it at every admission.
package price

import (
	"context"
	"fmt"
	"math/big"
	"regexp"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Bounds of prices.
const (
	maxListed = 500
	maxHourly = 1_000_000 // of the currency
	million   = 1_000_000

	secondsHour = 3_600
)

var (
	skuPattern    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	amountPattern = regexp.MustCompile(`^(0|[1-9][0-9]{0,6})(\.[0-9]{1,6})?$`)
)

// Service holds the reads and verbs.
type Service struct {
	// DB is the database.
	DB *tx.DB
}

// SetInput is a list price.
type SetInput struct{ SKU, Currency, Hourly string }

// micros is the hourly price in millionths of the currency.
func (in SetInput) micros() (int64, error) {
	wrong := &check.Input{}
	if !skuPattern.MatchString(in.SKU) {
		wrong.Bad("input.sku", "must be letters, digits, dot, dash and underscore, at most 64")
	}
	if _, err := money.Minor(in.Currency); err != nil {
		wrong.Bad("input.currency", "must be a currency of ISO 4217 in three capital letters")
	}
	amount, ok := new(big.Rat), false
	if amountPattern.MatchString(in.Hourly) {
		amount, ok = amount.SetString(in.Hourly)
	}
	if !ok || amount.Cmp(big.NewRat(maxHourly, 1)) > 0 {
		wrong.Bad("input.hourly", "must be a decimal number of at most six places, 0 to %d", maxHourly)
		return 0, wrong.Err()
	}
	return amount.Mul(amount, big.NewRat(million, 1)).Num().Int64(), wrong.Err()
}

// Set sets a SKU's list price. It requires sku.price.manage on the platform. Faults: INVALID_ARGUMENT
// naming the field, FORBIDDEN.
func (s *Service) Set(ctx context.Context, in SetInput) (*db.SKUPrice, error) {
	micros, err := in.micros()
	if err != nil {
		return nil, err
	}
	var out *db.SKUPrice
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "setSkuPrice"
		if err := audit.Require(t, action, authz.SKUPriceManage, authz.Object{}, ""); err != nil {
			return err
		}
		before, err := read(ctx, t, `SELECT `+rows.SKUPriceColumns+` FROM sku_price WHERE sku = $1 FOR UPDATE`, in.SKU)
		if err != nil {
			return err
		}
		after, err := read(ctx, t, `INSERT INTO sku_price (id, sku, currency, hourly_micros, updated_at)
			VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (sku) DO UPDATE SET currency = $3, hourly_micros = $4, updated_at = $5
			RETURNING `+rows.SKUPriceColumns,
			ids.New(ids.SKUPrice), in.SKU, in.Currency, micros, t.Now)
		if err != nil {
			return err
		}
		out = after[0]
		if err := book(ctx, t, in); err != nil {
			return err
		}
		entry := audit.Entry{Action: action, Key: authz.SKUPriceManage, ObjectID: out.ID, After: shown(out)}
		if len(before) > 0 {
			entry.Before = shown(before[0])
		}
		return audit.Write(ctx, t, entry)
	})
	return out, err
}

// book writes a list price into the price book: one version for all meters of capacity, by time.
func book(ctx context.Context, t *tx.Tx, in SetInput) error {
	price, err := money.Parse(in.Hourly)
	if err != nil {
		return err
	}
	version := Version{Reason: "list price", CreatedBy: string(t.Actor.Subject.ID)}
	version.Price = rating.Price{Meter: rating.AnyCapacity, SKU: in.SKU, Currency: in.Currency, Scope: rating.Platform,
		From:  t.Now,
		Terms: rating.Terms{Measure: rating.Time, Per: money.Int(secondsHour), Tiers: []rating.Tier{{Price: price}}}}
	_, err = Add(ctx, t, version, false)
	return err
}

func shown(row *db.SKUPrice) map[string]any {
	return map[string]any{"sku": row.Sku, "currency": row.Currency, "hourlyMicros": row.HourlyMicros}
}

// List reads the list prices by SKU, at most 500. Any logged-in caller may.
func (s *Service) List(ctx context.Context) ([]*db.SKUPrice, error) {
	found := []*db.SKUPrice{}
	_, err := s.DB.Read(ctx, tx.Rows(&found, rows.SKUPrice, `SELECT `+rows.SKUPriceColumns+` FROM sku_price ORDER BY sku
		LIMIT $1`, maxListed))
	return found, err
}

func read(ctx context.Context, t *tx.Tx, sql string, args ...any) ([]*db.SKUPrice, error) {
	list, err := tx.Collect(ctx, t, rows.SKUPrice, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("set a price: %w", err)
	}
	return list, nil
}
