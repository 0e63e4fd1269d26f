package member

import (
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
)

// read is a stored input; FAILED_PRECONDITION when the operation kept none.
func read[T any](stored json.RawMessage) (in T, err error) {
	if len(stored) == 0 {
		return in, fault.New(fault.FailedPrecondition, "what the operation was asked is not known any more: ask its verb anew").At("input.operationId")
	}
	if err := json.Unmarshal(stored, &in); err != nil {
		return in, fmt.Errorf("read what an operation was asked: %w", err)
	}
	return in, nil
}
