// Package verdict judges a change by its facts: state, compatibility, quota and policy answer in this order, and what
// they choose on the way (seats, a version, operations to supersede) is kept with the answers.
package verdict

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/kit/tariff"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Verdicts are facts with the answer of every source, and with what the change chooses.
type Verdicts struct {
	*change.Facts
	Minted change.Minted
	// List holds one verdict for each source, in order; of a launch one for each rule up to the first refusal.
	List []Verdict
	// Seats are the members that come, in order.
	Seats []Seat
	// From and To are the versions that the change leads from and to; From is nil for a launch.
	From, To *operation.Version
	// Target and Next are the manifest of To.
	Target *db.Manifest
	Next   *manifest.Manifest
	// Bound are the volumes that the instance uses, and homes where local ones are, or come to be.
	Bound []volume.Binding
	homes change.Homes
	// Created are allocations that were placed for the change.
	Created []*db.Allocation
	// Cost is the change's effect on the price of an hour; nil when no plan or rule needs it.
	Cost *tariff.Cost
	// Superseded are open operations that the change ends.
	Superseded []*db.Operation
	// Hastened is the open operation that the change forces; nil for a change with an operation of its own.
	Hastened *db.Operation
	// Counts are the members of each component of a launch, and Named its allocations in the request's order.
	Counts map[string]int
	Named  []*db.Allocation
	// housed are the allocations that a launch requested, by component; asked is the input field of each of Created.
	housed map[string][]*db.Allocation
	asked  []string

	// misfit is why the config does not fit Next; nil when it does.
	misfit error
	// usage is what the project has when a launch is judged; zero when nothing of it is counted.
	usage *overlay.Usage
}

// Verdict is the answer of one source: refused with a fault, or allowed, perhaps with a hint.
type Verdict struct {
	Source  lifecycle.VerdictSource
	Outcome lifecycle.VerdictOutcome
	Refusal *fault.Fault
	Reasons []fault.Reason
}

// View returns the verdict as a plan shows it. A refusal without reasons is its own reason.
func (one Verdict) View() *change.Verdict {
	reasons := one.Reasons
	if one.Refusal != nil {
		reasons = one.Refusal.Reasons
		if len(reasons) == 0 {
			reasons = []fault.Reason{{Code: one.Refusal.Code, Message: one.Refusal.Message}}
		}
	}
	out := &change.Verdict{Source: one.Source, Outcome: one.Outcome, Reasons: []*fault.Reason{}}
	if one.Refusal != nil {
		code := string(one.Refusal.Code)
		out.Code = &code
	}
	for i := range reasons {
		out.Reasons = append(out.Reasons, &reasons[i])
	}
	return out
}

// Evaluate gets the verdict of every source but the adapter, in order. Once the state refuses, the later ones have
// nothing to judge. A plan's transaction rolls back what was placed. An error is not a refusal of a rule.
func Evaluate(ctx context.Context, t *tx.Tx, facts *change.Facts, minted change.Minted) (*Verdicts, error) {
	v := &Verdicts{Facts: facts, Minted: minted, homes: change.Homes{}}
	judge := v.evaluate
	if facts.Launch != nil {
		judge = v.evaluateLaunch
	}
	if err := judge(ctx, t); err != nil {
		return nil, err
	}
	return v, v.reckon(ctx, t)
}

// evaluate gets the verdicts of the sources about a change of an instance.
func (v *Verdicts) evaluate(ctx context.Context, t *tx.Tx) error {
	if err := v.answer(lifecycle.VerdictState, v.state(ctx, t)); err != nil {
		return err
	}
	switch {
	case v.Hastened != nil: // nothing more is wanted than what was accepted already
		v.List = append(v.List, Verdict{Source: lifecycle.VerdictCompatibility, Outcome: lifecycle.VerdictAllowed},
			Verdict{Source: lifecycle.VerdictQuota, Outcome: lifecycle.VerdictAllowed})
	case v.Refused() != nil:
		v.skip(lifecycle.VerdictCompatibility, lifecycle.VerdictQuota)
	default:
		if err := v.answer(lifecycle.VerdictCompatibility, v.compatible(ctx, t)); err != nil {
			return err
		}
		if err := v.answer(lifecycle.VerdictQuota, v.quota(ctx, t)); err != nil {
			return err
		}
	}
	return v.evaluatePolicy(ctx, t)
}

// answer adds a source's answer; an error that is not a fault is passed on.
func (v *Verdicts) answer(source lifecycle.VerdictSource, err error) error {
	refusal, ok := fault.As(err)
	switch {
	case err == nil:
		v.List = append(v.List, Verdict{Source: source, Outcome: lifecycle.VerdictAllowed, Reasons: v.hints(source)})
	case ok && refusal.Code != fault.Internal:
		v.List = append(v.List, Verdict{Source: source, Outcome: lifecycle.VerdictRefused, Refusal: refusal})
	default:
		return err
	}
	return nil
}

// hints returns what a plan states though nothing is refused: that the change will need a reason.
func (v *Verdicts) hints(source lifecycle.VerdictSource) []fault.Reason {
	if source != lifecycle.VerdictState || (!v.MayForce() && !v.NeedsReason()) {
		return nil
	}
	return []fault.Reason{{Code: fault.Required, Message: "a reason must be given", Path: "input.reason"}}
}

// skip adds unknown verdicts of sources that have nothing to judge.
func (v *Verdicts) skip(sources ...lifecycle.VerdictSource) {
	for _, source := range sources {
		v.List = append(v.List, Verdict{Source: source, Outcome: lifecycle.VerdictUnknown, Reasons: []fault.Reason{
			{Code: fault.FailedPrecondition, Message: "was not checked, since the state refuses the change"}}})
	}
}

// Refused returns the first refusal; nil when no source refuses.
func (v *Verdicts) Refused() *fault.Fault {
	for _, one := range v.List {
		if one.Outcome == lifecycle.VerdictRefused {
			return one.Refusal
		}
	}
	return nil
}

// NeedsReason reports whether the kind needs a reason in the member's present state.
func (v *Verdicts) NeedsReason() bool {
	return v.Rule.Reason != "" && v.Member != nil && v.Member.Status == lifecycle.MemberActive &&
		v.Member.Health == lifecycle.HealthHealthy
}

// quota checks what the change adds against the project's entitlement to the app and its quota.
func (v *Verdicts) quota(ctx context.Context, t *tx.Tx) error {
	if err := v.entitled(); err != nil {
		return err
	}
	if v.Kind == lifecycle.MembersAdd {
		if err := capacity.Members(ctx, t, v.Project, v.Count, "input.count"); err != nil {
			return err
		}
	}
	if len(v.Created) == 0 {
		return nil
	}
	return capacity.GPUs(ctx, t, v.Project, "input.intent")
}

// ApplyAdapterAnswer adds the adapter's verdict; nil when the adapter was not called, since the state refuses the
// change. An unsafe verdict refuses the change unless force was chosen. For a launch no adapter is called.
func (v *Verdicts) ApplyAdapterAnswer(answer *adapter.PlanAnswer) {
	if v.Launch != nil {
		return
	}
	if answer == nil {
		v.skip(lifecycle.VerdictAdapter)
		return
	}
	one := Verdict{Source: lifecycle.VerdictAdapter, Outcome: lifecycle.VerdictUnknown, Reasons: reasonsOf(answer)}
	switch {
	case answer.Verdict == adapter.VerdictSafe, answer.Verdict == adapter.VerdictUnsafe && v.Force:
		one.Outcome = lifecycle.VerdictAllowed
	case answer.Verdict == adapter.VerdictUnsafe:
		one.Outcome = lifecycle.VerdictRefused
		one.Refusal = fault.New(fault.AdapterRejected, "the adapter reports that this is not safe: %s", answer.Message).
			With(one.Reasons...)
	}
	v.List = append(v.List, one)
}

func reasonsOf(answer *adapter.PlanAnswer) []fault.Reason {
	var reasons []fault.Reason
	for _, reason := range answer.Reasons[:min(len(answer.Reasons), fault.MaxReasons)] {
		reasons = append(reasons, fault.Reason{Code: fault.Code(reason.Code), Message: reason.Message,
			Path: reason.Path})
	}
	return reasons
}
