package change

import (
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

// Request is a change as a verb asks for it: everything that a plan of it rests on. What a kind has
// no use for stays empty.
type Request struct {
	// Action is the mutation's name, for audit and idempotency.
	Action string
	Kind   lifecycle.OperationKind
	// One of both is named: the instance, or a member of it.
	InstanceID, MemberID ids.ID
	ComponentKey         string
	Count                int
	AllocationIDs        []ids.ID
	Intent               *capacity.Want
	Force                bool
	Labels               json.RawMessage
	Version              string          // empty for the present one
	Config               json.RawMessage // nil for the present one
	Generation           *int            // nil for the one before
	// Asked is what only the change itself takes, not its plan.
	Asked Asked
}

// Asked is what is said along with a change without being part of its plan.
type Asked struct {
	KeepFailed      bool
	OnDeadline      lifecycle.DeadlineOutcome // empty for FAIL
	DeadlineSeconds int
	PlanHash        string // empty to go without a plan
	Reason          string
	IdempotencyKey  string
	RetryOf         ids.ID // empty when it tries nothing again
	// Input is the verb's input without idempotency key, plan and retry: what a retry asks again.
	Input any
}

// Again is how a retry calls a verb once more.
type Again struct {
	RetryOf         ids.ID
	Input           json.RawMessage // what the verb was asked the first time
	DeadlineSeconds *int            // nil for as long as the first time
	Reason          string          // empty for the first one
	IdempotencyKey  string
}

// Apply fills in what a retry says in place of the first request; left empty, the first reason and
// deadline stand.
func (a Again) Apply(asked *Asked) {
	asked.RetryOf, asked.IdempotencyKey, asked.PlanHash = a.RetryOf, a.IdempotencyKey, ""
	if a.Reason != "" {
		asked.Reason = a.Reason
	}
	if a.DeadlineSeconds != nil {
		asked.DeadlineSeconds = *a.DeadlineSeconds
	}
}

// check refuses what is wrong with the input by itself: INVALID_ARGUMENT with the paths.
func (r *Request) check() error {
	wrong := &check.Input{}
	if r.Kind == lifecycle.MembersAdd {
		r.checkAdd(wrong)
	}
	if r.Intent != nil {
		r.Intent.Check(wrong, "input.intent")
		if len(r.AllocationIDs) > 0 {
			wrong.Bad("input.intent", "name an allocation or ask for one, not both")
		}
	}
	if r.Kind == lifecycle.MemberLabel {
		checkLabels(wrong, r.Labels)
	}
	if len(r.Config) > manifest.MaxConfig {
		wrong.Bad("input.config", "at most %d bytes", manifest.MaxConfig)
	}
	return wrong.Err()
}

func (r *Request) checkAdd(wrong *check.Input) {
	if r.Count < 1 || r.Count > capacity.MaxCount {
		wrong.Bad("input.count", "must be 1 to %d", capacity.MaxCount)
	}
	if r.Intent == nil && len(r.AllocationIDs) == 0 {
		wrong.Bad("input.allocationIds", "name allocations, or say in intent what to ask for")
	}
	if len(r.AllocationIDs) > max(r.Count, 1) {
		wrong.Bad("input.allocationIds", "at most one for each member")
	}
	seen := make(map[ids.ID]bool, len(r.AllocationIDs))
	for i, id := range r.AllocationIDs {
		if seen[id] {
			wrong.Bad(fmt.Sprintf("input.allocationIds.%d", i), "named twice")
		}
		seen[id] = true
	}
}

func checkLabels(wrong *check.Input, given json.RawMessage) {
	var labels map[string]string
	if json.Unmarshal(given, &labels) != nil || labels == nil {
		wrong.Bad("input.labels", "must be an object of texts")
		return
	}
	if len(labels) > maxLabels {
		wrong.Bad("input.labels", "at most %d labels", maxLabels)
		return
	}
	for name, value := range labels {
		if !label.MatchString(name) || !label.MatchString(value) {
			wrong.Bad("input.labels", "names and values must be 1 to 63 letters, digits, dots, dashes and underscores")
			return
		}
	}
}

// checkAsked refuses what is wrong with what is said along with the change.
func (r *Request) checkAsked() error {
	wrong := &check.Input{}
	wrong.Reason("input.reason", r.Asked.Reason)
	if err := wrong.Err(); err != nil {
		return err
	}
	if !r.Kind.Effects().Forcible && (r.Force || r.Asked.OnDeadline == lifecycle.DeadlineForce) {
		return fault.New(fault.InvalidArgument, "a %s cannot be forced", ruleOf(r.Kind).Noun).At("input.force")
	}
	if (r.Force || r.Asked.OnDeadline == lifecycle.DeadlineForce) && r.Asked.Reason == "" {
		return reasonMissing("force needs a reason")
	}
	return operation.CheckDeadline(r.Asked.DeadlineSeconds)
}

func reasonMissing(message string) *fault.Fault {
	return fault.New(fault.InvalidArgument, "%s", message).
		With(fault.Reason{Code: fault.Required, Message: message, Path: "input.reason"})
}

// idemVerb names the use of an idempotency key.
func (r *Request) idemVerb() string {
	if r.Asked.RetryOf != "" {
		return "retryOperation"
	}
	return r.Action
}

// subject is the path of the input field that names what is changed.
func (r *Request) subject() string {
	if r.MemberID != "" {
		return "input.memberId"
	}
	return "input.instanceId"
}
