package change

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// maxLabels bounds the labels of a member.
const maxLabels = 32

// label is a label's name or value.
var label = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)

// Request is a change as a verb passes it: everything that its plan rests on. A kind leaves the fields that it does not
// use empty.
type Request struct {
	// Action is the mutation's name, for audit and idempotency.
	Action string
	Kind   lifecycle.OperationKind
	// One of three is set: the instance, a member of it, or the launch of an instance that does not exist yet.
	InstanceID, MemberID ids.ID
	Launch               *Launch
	// MemberIDs are several members of one instance that are removed together.
	MemberIDs []ids.ID
	// Scale is the number of members that a component is to have. Kind and Count follow from what there is.
	Scale         *Scale
	ComponentKey  string
	Count         int
	AllocationIDs []ids.ID
	Intent        *capacity.Want
	Force         bool
	Labels        json.RawMessage
	Version       string          // empty for the present one
	Config        json.RawMessage // nil for the present one
	Generation    *int            // nil for the one before
	// HourlyLimitMicros is the most that the capacity placed for it may cost an hour, in millionths of the price list's
	// currency; nil for no bound.
	HourlyLimitMicros *int
	// Conditions are how long it may take, and what happens then.
	Conditions Conditions
	// Asked is what only the change itself takes, not its plan.
	Asked Asked
}

// Conditions are how long a change may take and what becomes of it when it does not succeed. A plan shows them, and its
// hash holds for them alone: another outcome at the deadline is another change.
type Conditions struct {
	DeadlineSeconds int
	OnDeadline      lifecycle.DeadlineOutcome // empty for FAIL
	// KeepFailed keeps members that could not join.
	KeepFailed bool
}

// Outcome returns what happens at the deadline.
func (c Conditions) Outcome() lifecycle.DeadlineOutcome {
	return cmp.Or(c.OnDeadline, lifecycle.DeadlineFail)
}

// Asked is passed along with a change without being part of its plan.
type Asked struct {
	PlanHash       string // empty to go without a plan
	Reason         string
	IdempotencyKey string
	RetryOf        ids.ID // empty unless it retries an operation
	// Input is the verb's input without idempotency key, plan and retry: a retry passes it again.
	Input any
}

// Again is how a retry calls a verb again.
type Again struct {
	RetryOf         ids.ID
	Input           json.RawMessage // the verb's first input
	DeadlineSeconds *int            // nil for as long as the first time
	Reason          string          // empty for the first one
	PlanHash        string          // empty to go without a plan
	IdempotencyKey  string
}

// Apply replaces parts of the first request by the retry's. Left empty, the first reason and deadline are kept.
func (a Again) Apply(request *Request) {
	asked := &request.Asked
	asked.RetryOf, asked.IdempotencyKey, asked.PlanHash = a.RetryOf, a.IdempotencyKey, a.PlanHash
	if a.Reason != "" {
		asked.Reason = a.Reason
	}
	if a.DeadlineSeconds != nil {
		request.Conditions.DeadlineSeconds = *a.DeadlineSeconds
	}
}

// ReadInput decodes the input that a retry passes again: FAILED_PRECONDITION when the operation stored none.
func ReadInput[T any](stored json.RawMessage) (in T, err error) {
	if len(stored) == 0 {
		return in, fault.New(fault.FailedPrecondition,
			"the operation's input is not stored any more: send the original request again").At("input.operationId")
	}
	if err := json.Unmarshal(stored, &in); err != nil {
		return in, fmt.Errorf("read the input of an operation: %w", err)
	}
	return in, nil
}

// Check refuses input that is wrong by itself: INVALID_ARGUMENT with the paths.
func (r *Request) Check() error {
	wrong := &check.Input{}
	if r.Kind == lifecycle.MembersAdd {
		r.checkAdd(wrong)
	}
	r.checkSeveral(wrong)
	if r.Intent != nil {
		r.Intent.Check(wrong, "input.intent")
		if len(r.AllocationIDs) > 0 {
			wrong.Bad("input.intent", "name an allocation or request one, not both")
		}
	}
	if r.Kind == lifecycle.MemberLabel {
		checkLabels(wrong, r.Labels)
	}
	if len(r.Config) > manifest.MaxConfig {
		wrong.Bad("input.config", "must have at most %d bytes", manifest.MaxConfig)
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	return r.checkConditions()
}

// checkConditions refuses conditions that the kind does not have: INVALID_ARGUMENT with the path.
func (r *Request) checkConditions() error {
	if forcible := r.Kind.Effects().Forcible; !forcible &&
		(r.Force || r.Conditions.OnDeadline == lifecycle.DeadlineForce) {
		return fault.New(fault.InvalidArgument, "a %s cannot be forced", ruleOf(r.Kind).Noun).At("input.force")
	}
	return operation.CheckDeadline(r.Conditions.DeadlineSeconds)
}

// MayForce reports whether the change may lose work and go without proof: at once, or at its deadline.
func (r *Request) MayForce() bool {
	return r.Force || r.Conditions.OnDeadline == lifecycle.DeadlineForce
}

func (r *Request) checkAdd(wrong *check.Input) {
	if r.Count < 1 || r.Count > capacity.MaxCount {
		wrong.Bad("input.count", "must be 1 to %d", capacity.MaxCount)
	}
	if r.Intent == nil && len(r.AllocationIDs) == 0 {
		wrong.Bad("input.allocationIds", "name allocations, or state in intent what to request")
	}
	if len(r.AllocationIDs) > max(r.Count, 1) {
		wrong.Bad("input.allocationIds", "must have at most one for each member")
	}
	seen := make(map[ids.ID]bool, len(r.AllocationIDs))
	for i, id := range r.AllocationIDs {
		if seen[id] {
			wrong.Bad(fmt.Sprintf("input.allocationIds.%d", i), "is named twice")
		}
		seen[id] = true
	}
}

func checkLabels(wrong *check.Input, given json.RawMessage) {
	var labels map[string]string
	if json.Unmarshal(given, &labels) != nil || labels == nil {
		wrong.Bad("input.labels", "must be an object with texts as values")
		return
	}
	if len(labels) > maxLabels {
		wrong.Bad("input.labels", "must have at most %d labels", maxLabels)
		return
	}
	for name, value := range labels {
		if !label.MatchString(name) || !label.MatchString(value) {
			wrong.Bad("input.labels", "names and values must be 1 to 63 letters, digits, dots, dashes and underscores")
			return
		}
	}
}

// CheckAsked refuses what is wrong with the part that only the change takes: INVALID_ARGUMENT with the paths.
func (r *Request) CheckAsked() error {
	wrong := &check.Input{}
	wrong.Reason("input.reason", r.Asked.Reason)
	if err := wrong.Err(); err != nil {
		return err
	}
	if r.MayForce() && r.Asked.Reason == "" {
		return ReasonMissing("force needs a reason")
	}
	return nil
}

// ReasonMissing returns the refusal of a change whose reason is empty: INVALID_ARGUMENT at input.reason.
func ReasonMissing(message string) *fault.Fault {
	return fault.New(fault.InvalidArgument, "%s", message).
		With(fault.Reason{Code: fault.Required, Message: message, Path: "input.reason"})
}

// Verb names the mutation for audit and idempotency.
func (r *Request) Verb() string {
	if r.Asked.RetryOf != "" {
		return "retryOperation"
	}
	return r.Action
}

// Claimed returns everything that the idempotency key is bound to: another request under the same key is refused. That
// of a launch is its whole input.
func (r *Request) Claimed() any {
	if r.Launch != nil {
		return r.Asked.Input
	}
	return struct {
		Input, Labels   any
		PlanHash        string
		RetryOf         ids.ID
		Reason          string
		DeadlineSeconds int
	}{r.Asked.Input, r.Labels, r.Asked.PlanHash, r.Asked.RetryOf, r.Asked.Reason, r.Conditions.DeadlineSeconds}
}

// SubjectPath returns the path of the input field that names what is changed.
func (r *Request) SubjectPath() string {
	switch {
	case r.MemberID != "":
		return "input.memberId"
	case len(r.MemberIDs) > 0:
		return "input.memberIds"
	}
	return "input.instanceId"
}
