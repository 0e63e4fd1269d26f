package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/bench/dataset"
)

// The bar of verifying a signed token.
const (
	maxVerification = 60 * time.Microsecond
	tokenRuns       = 30
	tokensARun      = 200
)

// measureToken verifies the token of an operation, as every call of an adapter shows one.
func measureToken(_ context.Context, b *bench) error {
	ring, err := token.NewKeyring(issuer)
	if err != nil {
		return err
	}
	now := time.Now()
	keys := authz.OperationKeys(authz.TaskRun, authz.TaskRead, authz.OperationRead, authz.OperationReport, authz.ArtifactRead, authz.AppsInstanceRead)
	text, err := ring.Sign(token.Claims{Operation: dataset.ID(ids.Operation, 1), Instance: dataset.Instance(1), Keys: keys, ExpiresAt: now.Add(time.Hour)}, now)
	if err != nil {
		return err
	}
	each, err := verify(ring, text, now)
	if err != nil {
		return err
	}
	b.sheet.within("verification of a signed token", fmt.Sprintf("%.1f µs", float64(each)/1000), "≤ 60 µs", each <= maxVerification)
	return nil
}

// verify is what one verification costs, in time of this thread's own: the best of some runs.
func verify(ring *token.Keyring, text string, now time.Time) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := time.Duration(math.MaxInt64)
	for range tokenRuns {
		began := threadTime()
		for range tokensARun {
			if _, err := ring.Verify(text, now); err != nil {
				return 0, err
			}
		}
		best = min(best, (threadTime()-began)/tokensARun)
	}
	return best, nil
}
