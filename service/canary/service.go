// Package canary shows how the canary of a manifest goes beside the active version, and halts one that is clearly
// worse.
package canary

import (
	"time"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Service holds the read and the halt.
type Service struct {
	DB *tx.DB
}

// Report is a canary's state.
type Report struct {
	Percent    int
	StartedAt  *time.Time
	HaltedAt   *time.Time
	HaltReason string
	Verdict    lifecycle.CanaryVerdict
	Canary     *Arm
	Active     *Arm
	Points     []*Point
	Threshold  float64
}

// Arm is how the launches of one version went since the canary began.
type Arm struct {
	Manifest                           *db.Manifest
	Launches, Failed, Pending          int
	FailureRate                        *float64
	Operations, OperationsFailed       int
	TimeToRunningP50, TimeToRunningP90 *float64 // seconds
}

// Point is a point of the chart, after a launch of either arm has ended.
type Point struct {
	At                                                         time.Time
	CanaryLaunches, CanaryFailed, ActiveLaunches, ActiveFailed int
	Evidence                                                   float64
}
