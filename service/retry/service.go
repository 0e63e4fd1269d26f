// Package retry asks again for what an operation did not come to: it calls the verb of the
// operation's kind with what that operation was asked, so that every rule is asked again.
package retry

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/operation"
)

// Service holds what the verb needs.
type Service struct {
	// DB is the database.
	DB *tx.DB
}

// Input is which operation is tried again.
type Input struct {
	OperationID     ids.ID
	DeadlineSeconds *int // nil for as long as the first time
	Reason          string
	IdempotencyKey  string
}

// Retry accepts a new try.
func (s *Service) Retry(ctx context.Context, in Input) (*operation.View, error) {
	return nil, fault.New(fault.Unavailable, "not in this build")
}
