package decisions

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/kit"
)

// The bar of verifying a signed token.
const (
	maxVerification = 60 * time.Microsecond
	tokenRuns       = 30
	tokensARun      = 200
)

// measureToken verifies the token of an operation, as every call of an adapter shows one.
func measureToken(_ context.Context, b *kit.Bench) error {
	ring, err := token.NewKeyring(kit.Issuer)
	if err != nil {
		return err
	}
	now := time.Now()
	keys := authz.OperationKeys(authz.TaskRun, authz.TaskRead, authz.OperationRead, authz.OperationReport,
		authz.ArtifactRead, authz.AppsInstanceRead)
	texts := make([]string, tokensARun)
	for i := range texts {
		claims := token.Claims{Operation: dataset.ID(ids.Operation, 1), Instance: dataset.Instance(1), Keys: keys,
			ExpiresAt: now.Add(time.Hour)}
		if texts[i], err = ring.Sign(claims, now); err != nil {
			return err
		}
	}
	first, err := verify(ring, texts, now, 1)
	if err != nil {
		return err
	}
	again, err := verify(ring, texts, now, tokenRuns)
	if err != nil {
		return err
	}
	b.Sheet.Within("verification of a signed token, repeated", inMicros(again), "≤ 60 µs", again <= maxVerification)
	b.Sheet.Told("verification of a signed token, first time", inMicros(first), "", 0)
	return nil
}

func inMicros(d time.Duration) string { return fmt.Sprintf("%.1f µs", float64(d)/1000) }

// verify is what one verification costs, in time of this thread's own: the best of some runs over the tokens.
func verify(ring *token.Keyring, texts []string, now time.Time, runs int) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := time.Duration(math.MaxInt64)
	for range runs {
		began := threadTime()
		for _, text := range texts {
			if _, err := ring.Verify(text, now); err != nil {
				return 0, err
			}
		}
		best = min(best, (threadTime()-began)/tokensARun)
	}
	return best, nil
}
