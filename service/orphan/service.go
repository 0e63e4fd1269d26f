// Package orphan lists what operations could not take back: what it is, whose it is, how old it is
// and what it costs.
package orphan

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/page"
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

// MoneyOf is an amount given in millionths of the currency.
func MoneyOf(currency string, micros int64) *Money {
	return &Money{Currency: currency, Amount: fmt.Sprintf("%d.%06d", micros/1e6, micros%1e6)}
}

// Filter chooses orphans of a list.
type Filter struct {
	ProjectID ids.ID
	Resolved  bool
}

var errPending = fault.New(fault.Unavailable, "not in this build")

// List reads orphans of a project, newest first.
func (s *Service) List(ctx context.Context, filter Filter, args page.Args) (*page.Page[*View], error) {
	return nil, errPending
}

// OfInstances reads what is still there of instances, at most 100 each. The caller has authorised them.
func (s *Service) OfInstances(ctx context.Context, instances []ids.ID) (map[ids.ID][]*View, error) {
	return nil, nil
}

// Get reads an orphan.
func (s *Service) Get(ctx context.Context, id ids.ID) (*View, error) { return nil, errPending }

// Retry tries now to take an orphan back.
func (s *Service) Retry(ctx context.Context, id ids.ID) (*View, error) { return nil, errPending }
