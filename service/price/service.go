// Package price holds the list prices of SKUs.
package price

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Service holds the reads and verbs.
type Service struct {
	// DB is the database.
	DB *tx.DB
}

// SetInput is a list price.
type SetInput struct{ SKU, Currency, Hourly string }

var errPending = fault.New(fault.Unavailable, "not in this build")

// Set sets a SKU's list price.
func (s *Service) Set(ctx context.Context, in SetInput) (*db.SKUPrice, error) { return nil, errPending }

// List reads the list prices by SKU.
func (s *Service) List(ctx context.Context) ([]*db.SKUPrice, error) { return nil, errPending }
