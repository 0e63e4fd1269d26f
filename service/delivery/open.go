package delivery

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
)

// Open opens a delivery.
func (s *Service) Open(ctx context.Context, taskID ids.ID) (*Delivery, error) {
	panic("not implemented")
}
