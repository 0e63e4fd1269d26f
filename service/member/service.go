// Package member holds the verbs on the members of a running instance: add, drain, cordon, uncordon,
// label, remove, replace, recover, and the plans that show beforehand what they would do.
package member

import (
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/operation"
)

// Service holds what the verbs need.
type Service struct {
	// DB is the database.
	DB *tx.DB
	// Planner asks adapters what they think of a change.
	Planner change.Planner
}

// Intent is capacity that is asked for along with a change.
type Intent struct {
	Shape       lifecycle.CapacityShape
	GPUCount    *int   // for GPU_SLICE only
	SKU, Region string // empty for any
}

// AddInput is which members are added, and where. For a plan the fields below KeepFailed are left out.
type AddInput struct {
	InstanceID      ids.ID
	ComponentKey    string
	Count           int
	AllocationIDs   []ids.ID
	Intent          *Intent
	KeepFailed      bool
	DeadlineSeconds int
	PlanHash        string
	Reason          string
	IdempotencyKey  string
}

// Input is what every verb on one member takes; each reads the fields that its mutation has.
type Input struct {
	MemberID        ids.ID
	Force           bool
	OnDeadline      lifecycle.DeadlineOutcome
	DeadlineSeconds int
	PlanHash        string
	Reason          string
	IdempotencyKey  string
}

// LabelInput is how a member is labelled.
type LabelInput struct {
	Input
	Labels []byte // an object
}

// ReplaceInput is which member makes way, and where the new one lives.
type ReplaceInput struct {
	Input
	AllocationID ids.ID // empty for the same one
	Intent       *Intent
}

// Added are members on their way in.
type Added struct {
	InstanceID ids.ID
	Members    []*db.Member
	Operation  *operation.View
}

// Changed is a change of a member under way.
type Changed struct {
	Member *db.Member
	// Replacement is the member that comes; nil unless one is replaced.
	Replacement *db.Member
	Operation   *operation.View
}
