package ending

import (
	"context"
	"errors"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Lasting returns why an end failed, and whether the next try would meet the same: everything does that is not the
// connection, a lock or another condition of the moment.
func Lasting(err error) (why string, lasts bool) {
	switch by, lasts := tx.Refusal(err); {
	case err == nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), tx.Away(err):
		return "", false
	case lasts:
		return "the database refuses it with " + by, true
	case tx.Passing(err):
		return "", false
	}
	if known, ok := fault.As(err); ok {
		return known.Message, known.Code != fault.Unavailable
	}
	return "an internal error", true
}
