package change

import (
	"encoding/json"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/service/kit/impact"
	"github.com/gpuaas/app-platform/service/kit/tariff"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Bounds of what a plan shows.
const (
	MaxMembers = 256
	MaxWork    = 100
)

// Plan is what a change would do.
type Plan struct {
	Hash          string
	Kind          lifecycle.OperationKind
	InstanceID    ids.ID
	Allowed       bool
	Members       []*PlannedMember
	WorkLost      []*operation.Work
	WorkLostTotal *int // nil when the adapter cannot tell
	// Force, KeepFailed, DeadlineSeconds and OnDeadline are the conditions that the hash holds for.
	Force, KeepFailed bool
	DeadlineSeconds   int
	OnDeadline        lifecycle.DeadlineOutcome
	// WorkAtRisk would be lost if the deadline passed now; empty unless force was chosen for it.
	WorkAtRisk      []*operation.Work
	WorkAtRiskTotal *int // nil when the adapter cannot tell
	Verdicts        []*Verdict
	Reversible      bool
	Reversal        string
	SupersedesIDs   []ids.ID
	Impact          *impact.Impact
	Change          json.RawMessage
	// Version is the version that the change leads to; empty when it stays.
	Version string
	// Cost is the change's effect on the price of an hour.
	Cost *tariff.Cost
}

// PlannedMember is a member that a plan would touch.
type PlannedMember struct {
	MemberID     *ids.ID // nil for one that does not exist yet
	ComponentKey string
	Action       lifecycle.PlanAction
	AllocationID *ids.ID          // nil when one would be placed
	Capacity     *PlannedCapacity // what would be placed; nil when nothing would be
	Reachable    bool
	Profile      isolation.Profile
	// IsolationClass is nil on a node that has not reported its walls.
	IsolationClass *isolation.Class
	// Volumes are those that a member which comes gets.
	Volumes []volume.Binding
}

// PlannedCapacity is what the platform has chosen to place for a member.
type PlannedCapacity struct {
	Shape       lifecycle.CapacityShape
	GPUCount    int
	SKU, Region string
	Hourly      *tariff.Hourly // nil when no price is set
}

// Verdict is the answer of one source to a plan.
type Verdict struct {
	Source  lifecycle.VerdictSource
	Outcome lifecycle.VerdictOutcome
	// Code is what the change would be refused with; nil unless this source refuses it.
	Code    *string
	Reasons []*fault.Reason
}
