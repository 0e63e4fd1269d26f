package contract

import (
	"encoding/json"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
)

// Work is one piece of work of the app, such as a job: what a drain waits for, or what an
// operation would lose.
type Work struct {
	// Kind is what sort of work it is, such as "job"; the adapter's word.
	Kind string `json:"kind"`
	// ID is the app's own id of it, unique within the instance and the kind.
	ID string `json:"id"`
	// Name is what people call it; may be empty.
	Name string `json:"name"`
	// MemberID is the member it runs on, where it runs on one.
	MemberID string `json:"memberId,omitempty"`
	// Owner is whose work it is, as the app knows its users; may be empty.
	Owner string `json:"owner"`
	// Since is when it began.
	Since time.Time `json:"since"`
	// Message says more to a person.
	Message string `json:"message"`
}

// PlanRequest asks what an operation would come to: the body of POST /v1/plans. It is a [Dispatch]
// of something that has not been decided, so it has no id, attempt or deadline.
type PlanRequest struct {
	// Kind is what would be done.
	Kind Kind `json:"kind"`
	// Instance is the app instance as it would be after the change.
	Instance Instance `json:"instance"`
	// Members are all members of the instance; members that are still to be made may be missing.
	Members []Member `json:"members"`
	// Targets are the ids of the members it would act on.
	Targets []string `json:"targets,omitempty"`
	// Change is the desired change, as in [Dispatch].
	Change json.RawMessage `json:"change,omitempty"`
	// Force is as in [Dispatch].
	Force bool `json:"force,omitempty"`
	// Choose asks who of the targets should leave when a component gets fewer members; nil for a plan of all targets.
	// Only an app that says [AppInfo.ChoosesLeaving] is asked.
	Choose *Choose `json:"choose,omitempty"`
	// CorrelationID ties together logs, audit and events of one request.
	CorrelationID string `json:"correlationId"`
	// Platform is how to reach the public API for this plan.
	Platform Platform `json:"platform"`
}

// Choose is how many members of a component are to leave. The targets of its request are those that may.
type Choose struct {
	// ComponentKey names the component.
	ComponentKey string `json:"componentKey"`
	// Count is how many leave.
	Count int `json:"count"`
}

// PlanAnswer is the adapter's word on an operation before it is begun. Nothing was changed for it.
type PlanAnswer struct {
	// Verdict is whether it would be safe; unknown is never read as safe.
	Verdict Verdict `json:"verdict"`
	// Reversible says whether what it does can be undone by another operation.
	Reversible bool `json:"reversible"`
	// Reasons say why, at most [MaxReasons]; an unsafe or unknown verdict has at least one.
	Reasons []PlanReason `json:"reasons"`
	// WorkLost is the work that would be lost, at most [MaxWork], longest running first.
	WorkLost []Work `json:"workLost"`
	// WorkTotal is how much work would be lost in all.
	WorkTotal int `json:"workTotal"`
	// Message says it to a person.
	Message string `json:"message"`
	// Chosen are the targets that should leave, the first one first, where [PlanRequest.Choose] asked. Too few, or
	// none, leave the rest to the platform; what is not a target is not read.
	Chosen []string `json:"chosen,omitempty"`
}

// PlanReason is one reason of a verdict.
type PlanReason struct {
	// Code is a stable name in UPPER_SNAKE.
	Code string `json:"code"`
	// Message says it to a person.
	Message string `json:"message"`
	// Path names the field at fault, where one is.
	Path string `json:"path,omitempty"`
}

// AddChange is the change of members.add. The targets are the new members.
type AddChange struct {
	// Components are how many members of each component are added.
	Components []ComponentCount `json:"components"`
}

// LabelChange is the change of member.label.
type LabelChange struct {
	// Labels are all the labels the targets shall have; others are taken away.
	Labels map[string]string `json:"labels"`
}

// ReplaceChange is the change of member.replace. The target is the member that leaves.
type ReplaceChange struct {
	// ReplacementID is the id of the new member; in a dispatch it is one of members.
	ReplacementID string `json:"replacementId"`
}

// VersionChange is the change of instance.upgrade and instance.rollback. The instance of the
// dispatch carries the version and config of To.
type VersionChange struct {
	// From is what the instance ran.
	From VersionConfig `json:"from"`
	// To is what it shall run.
	To VersionConfig `json:"to"`
}

// VersionConfig is a version of an app with a configuration.
type VersionConfig struct {
	// Version is the manifest version.
	Version string `json:"version"`
	// Config is the configuration, valid against that manifest's config schema.
	Config json.RawMessage `json:"config,omitempty"`
}

// Validate checks the shape of a plan request. The error is an [ErrorBody] with the path of the
// field at fault.
func (p PlanRequest) Validate() error {
	switch {
	case !p.Kind.Valid():
		return Invalid("kind", "%q is not an operation kind", wire.Clip(string(p.Kind), 64))
	case len(p.Targets) > MaxMembers:
		return Invalid("targets", "must not be more than %d", MaxMembers)
	case p.Choose != nil && (p.Choose.Count < 1 || p.Choose.Count > len(p.Targets)):
		return Invalid("choose.count", "must be 1 to the number of targets")
	}
	if err := p.Platform.Validate(); err != nil {
		return err
	}
	if err := validateInstance(p.Instance, p.Members); err != nil {
		return err
	}
	return validateTargets(p.Members, p.Targets)
}
