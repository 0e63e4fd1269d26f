// Package change is what the verbs that change a running instance or its members have in common:
// the facts that a change rests on, what is said to it, the plan that shows both before the change
// is asked for, and the hash that holds the two together.
package change

import (
	"encoding/json"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/kit/impact"
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
	WorkLostTotal *int // nil when nobody can tell
	Verdicts      []*Verdict
	Reversible    bool
	Reversal      string
	SupersedesIDs []ids.ID
	Impact        *impact.Impact
	Change        json.RawMessage
}

// PlannedMember is a member that a plan would touch.
type PlannedMember struct {
	MemberID     *ids.ID // nil for one that does not exist yet
	ComponentKey string
	Action       lifecycle.PlanAction
	AllocationID *ids.ID // nil when one would be asked for
	Reachable    bool
}

// Verdict is what one of those who have a say answers to a plan.
type Verdict struct {
	Source  lifecycle.VerdictSource
	Outcome lifecycle.VerdictOutcome
	Reasons []*fault.Reason
}
