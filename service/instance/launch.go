package instance

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// LaunchInput describes the instance to launch.
type LaunchInput struct {
	ProjectID ids.ID
	AppSlug   string
	Version   string // empty for the canary that has chosen the project, or else the active one
	Name      string
	// AllocationIDs are those that it is launched into. Without any, members live in those that their components name,
	// or in capacity that the launch requests by their components' intents.
	AllocationIDs []ids.ID
	Components    []Component // empty for the manifest's defaults
	Config        json.RawMessage
	// OperatingMode is who runs the control plane, empty for the tenant itself; ControlPlaneScope is whom it serves,
	// empty for one project.
	OperatingMode     lifecycle.OperatingMode     `json:",omitempty"`
	ControlPlaneScope lifecycle.ControlPlaneScope `json:",omitempty"`
	// OperatorServiceAccountID is the account of the project that the adapter may act by for it; nil for none.
	OperatorServiceAccountID *ids.ID `json:",omitempty"`
	// Volumes are those that it uses, by the slots of the manifest; the caller needs volume.use.
	Volumes         []change.VolumeChoice `json:",omitempty"`
	DeadlineSeconds int
	Smoke           bool
	PlanHash        string `json:",omitempty"`
	Reason          string
	IdempotencyKey  string
}

// Component is the number of members of a component, and their allocations.
type Component = change.Component

// Started is an accepted change: the instance and the operation that carries it out.
type Started struct {
	Instance  *View
	Operation *operation.View
}

// Launch accepts a launch: the instance, its members bound to the nodes of their allocations, and the operation that
// starts them. It requires <family>.instance.create on the project, manifest.smoke as well for a smoke launch,
// allocation.create for one that requests capacity, each key of the operator account, and control_plane.create on the
// tenant when the control plane serves more than the project or is not the tenant's own.
//
// Faults: NOT_FOUND (project, app, version, allocation), NOT_ENTITLED, FAILED_PRECONDITION (no launchable version, with
// reason NOT_IN_CANARY where a canary has not chosen the project or was halted; allocation not ready), CONFLICT
// (allocation in use, name taken), INCOMPATIBLE, CONFIG_INVALID with the config's path, LIMIT_EXCEEDED at
// input.components beyond the project's quota, CAPACITY_EXHAUSTED at the intent that nothing fits, POLICY_DENIED,
// INVALID_ARGUMENT, IDEMPOTENCY_KEY_REUSED.
func (s *Service) Launch(ctx context.Context, in LaunchInput) (*Started, error) {
	in.settle()
	if err := in.check(); err != nil {
		return nil, err
	}
	return s.accept(ctx, in.request())
}

// PlanLaunch shows what Launch would do: where its members would live, what an hour of that costs, and who refuses it.
// It requires the same keys and writes nothing.
func (s *Service) PlanLaunch(ctx context.Context, in LaunchInput) (*change.Plan, error) {
	in.settle()
	if err := in.check(); err != nil {
		return nil, err
	}
	return s.engine().Plan(ctx, in.request())
}

func (in LaunchInput) request() *change.Request {
	return &change.Request{
		Action: "launchInstance", Kind: lifecycle.InstanceCreate,
		AllocationIDs: in.AllocationIDs, Version: in.Version, Config: in.Config,
		Launch: &change.Launch{
			ProjectID: in.ProjectID, AppSlug: in.AppSlug, Name: in.Name, Components: in.Components,
			OperatingMode: in.OperatingMode, ControlPlaneScope: in.ControlPlaneScope, Smoke: in.Smoke,
			OperatorServiceAccountID: in.OperatorServiceAccountID, Volumes: in.Volumes,
		},
		Conditions: change.Conditions{DeadlineSeconds: in.DeadlineSeconds},
		Asked: change.Asked{PlanHash: in.PlanHash, Reason: in.Reason, IdempotencyKey: in.IdempotencyKey,
			Input: in},
	}
}

// settle fills in the defaults.
func (in *LaunchInput) settle() {
	if in.OperatingMode == "" {
		in.OperatingMode = lifecycle.ModeTenantDedicated
	}
	if in.ControlPlaneScope == "" {
		in.ControlPlaneScope = lifecycle.ControlPlaneProject
	}
	if len(in.Components) == 0 { // an empty list and none are one input, so that an idempotency key takes either
		in.Components = nil
	}
	in.house()
}

// check refuses input that is wrong by itself: INVALID_ARGUMENT with the paths.
func (in *LaunchInput) check() error {
	refused := fault.New(fault.InvalidArgument, "the launch is not valid")
	var reasons []fault.Reason
	bad := func(path, message string) {
		reasons = append(reasons, fault.Reason{Code: fault.BadValue, Message: message, Path: path})
	}
	if !namePattern.MatchString(in.Name) {
		bad("input.name",
			"must have 2 to 40 lower-case letters, digits and hyphens, starting with a letter and not ending "+
				"with a hyphen")
	}
	if (len(in.AllocationIDs) < 1 && in.requested() == 0) || len(in.AllocationIDs) > maxAllocations {
		bad("input.allocationIds",
			fmt.Sprintf("must have 1 to %d allocations, or state in the intent of components what to "+
				"request", maxAllocations))
	}
	if in.requested() > capacity.MaxCount {
		bad("input.components", fmt.Sprintf("a launch may request at most %d allocations, one for each member: name "+
			"existing ones for the others", capacity.MaxCount))
	}
	seen := make(map[ids.ID]bool)
	for i, id := range in.AllocationIDs {
		if seen[id] {
			bad(fmt.Sprintf("input.allocationIds.%d", i), "is named twice")
		}
		seen[id] = true
	}
	for i, component := range in.Components {
		for j, id := range component.AllocationIDs {
			if !seen[id] {
				bad(fmt.Sprintf("input.components.%d.allocationIds.%d", i, j), "is not among the launch's allocations")
			}
		}
	}
	if len(in.Volumes) > volume.MaxSlots {
		bad("input.volumes", fmt.Sprintf("must have at most %d entries, one for each slot", volume.MaxSlots))
	}
	reasons = append(reasons, in.wrongIntents()...)
	if len(in.Config) > manifest.MaxConfig {
		bad("input.config", fmt.Sprintf("must have at most %d bytes", manifest.MaxConfig))
	}
	if len(reasons) > 0 {
		return refused.With(reasons...)
	}
	if err := checkReason(in.Reason); err != nil {
		return err
	}
	return operation.CheckDeadline(in.DeadlineSeconds)
}
