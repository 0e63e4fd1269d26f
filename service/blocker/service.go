// Package blocker reads what keeps operations and instances from where they should be, and asks the
// rules which of it comes first.
package blocker

import (
	"context"

	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Service holds what the reads need.
type Service struct {
	// DB is the database.
	DB *tx.DB
}

// Operations reads the blockers of operations, each list with the one to mend first at its head. The
// caller has authorised the operations.
func (s *Service) Operations(ctx context.Context, wanted []ids.ID) (map[ids.ID][]*blocker.Blocker, error) {
	return nil, nil
}

// Instances reads the blockers of instances. The caller has authorised the instances.
func (s *Service) Instances(ctx context.Context, wanted []ids.ID) (map[ids.ID][]*blocker.Blocker, error) {
	return nil, nil
}
