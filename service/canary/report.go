package canary

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
)

// Report tells how the canary goes.
func (s *Service) Report(ctx context.Context, manifestID ids.ID) (*Report, error) {
	panic("not implemented")
}
