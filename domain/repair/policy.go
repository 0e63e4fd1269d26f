// Package repair decides what is done for members that were lost: by whom, when, how often, and when it stops. It is
// pure: facts in, a decision out.
package repair

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Mode is who repairs an instance.
type Mode string

// The modes.
const (
	// Manual leaves repair to people and their programs.
	Manual Mode = "MANUAL"
	// Automatic has the platform recover members, or else replace them.
	Automatic Mode = "AUTOMATIC"
)

// Values lists every Mode as it is stored and published.
func (Mode) Values() []string { return []string{string(Manual), string(Automatic)} }

// Bounds of a policy.
const (
	MaxBudget  = 20
	MinBackOff = 5
	MaxBackOff = 3_600
	MinGrace   = 60
	MaxGrace   = 7 * 86_400
)

// Window is the time for which a budget holds.
const Window = time.Hour

// Policy is how an instance is repaired.
type Policy struct {
	Mode Mode `json:"mode"`
	// Budget is how many repairs may begin within Window.
	Budget int `json:"budget"`
	// BackOffSeconds is the pause after a repair of a member that did not help; it doubles from one to the next.
	BackOffSeconds int `json:"backOffSeconds"`
	// GraceSeconds is how long the instance may have too few members in service before it fails for good; nil for ever.
	GraceSeconds *int `json:"graceSeconds,omitempty"`
	// HourlyLimitMicros is the most that the capacity of one replacement may cost an hour, in millionths of the price
	// list's currency; nil for no bound.
	HourlyLimitMicros *int `json:"hourlyLimitMicros,omitempty"`
}

// Default returns the policy of an instance that has none: repair is left to people.
func Default() Policy { return Policy{Mode: Manual, Budget: 3, BackOffSeconds: 30} }

// Of reads a stored policy; Default for none.
func Of(stored json.RawMessage) (Policy, error) {
	policy := Default()
	if len(stored) == 0 {
		return policy, nil
	}
	if err := json.Unmarshal(stored, &policy); err != nil {
		return Policy{}, fmt.Errorf("read a repair policy: %w", err)
	}
	return policy, nil
}

// Check refuses a policy out of bounds, with INVALID_ARGUMENT at the input's fields.
func (p Policy) Check() error {
	var reasons []fault.Reason
	within := func(name string, value, least, most int) {
		if value < least || value > most {
			message := fmt.Sprintf("must be %d to %d", least, most)
			reasons = append(reasons, fault.Reason{Code: fault.BadValue, Message: message, Path: "input." + name})
		}
	}
	if p.Mode != Manual && p.Mode != Automatic {
		reasons = append(reasons, fault.Reason{Code: fault.BadValue, Message: "must be MANUAL or AUTOMATIC",
			Path: "input.mode"})
	}
	within("budget", p.Budget, 1, MaxBudget)
	within("backOffSeconds", p.BackOffSeconds, MinBackOff, MaxBackOff)
	if p.GraceSeconds != nil {
		within("graceSeconds", *p.GraceSeconds, MinGrace, MaxGrace)
	}
	if p.HourlyLimitMicros != nil && *p.HourlyLimitMicros < 0 {
		reasons = append(reasons, fault.Reason{Code: fault.BadValue, Message: "must be at least 0",
			Path: "input.hourlyLimitMicros"})
	}
	if len(reasons) == 0 {
		return nil
	}
	return fault.New(fault.InvalidArgument, "the repair policy is out of bounds").With(reasons...)
}
