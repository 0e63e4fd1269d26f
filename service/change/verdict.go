package change

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/kit/capacity"
)

// verdict is what one source says: refused with a fault, or allowed, perhaps with something to say.
type verdict struct {
	source  lifecycle.VerdictSource
	outcome lifecycle.VerdictOutcome
	refusal *fault.Fault
	reasons []fault.Reason
}

// view is the verdict as it is shown: a refusal without reasons is its own reason.
func (v verdict) view() *Verdict {
	reasons := v.reasons
	if v.refusal != nil {
		reasons = v.refusal.Reasons
		if len(reasons) == 0 {
			reasons = []fault.Reason{{Code: v.refusal.Code, Message: v.refusal.Message}}
		}
	}
	out := &Verdict{Source: v.source, Outcome: v.outcome, Reasons: []*fault.Reason{}}
	for i := range reasons {
		out.Reasons = append(out.Reasons, &reasons[i])
	}
	return out
}

// judge asks every source but the adapter, in order. Once the state refuses, the later ones have
// nothing that they could judge. What is no refusal of a rule is an error.
func (c *Change) judge(ctx context.Context, t *tx.Tx) error {
	c.verdicts = nil
	if err := c.say(lifecycle.VerdictState, c.state(ctx, t)); err != nil {
		return err
	}
	if c.refused() != nil {
		c.unasked(lifecycle.VerdictCompatibility, lifecycle.VerdictQuota)
	} else {
		if err := c.say(lifecycle.VerdictCompatibility, c.compatible()); err != nil {
			return err
		}
		if err := c.say(lifecycle.VerdictQuota, c.quota(ctx, t)); err != nil {
			return err
		}
	}
	return c.judgePolicy(ctx, t)
}

// say notes a source's answer; an error that is no fault is passed on.
func (c *Change) say(source lifecycle.VerdictSource, err error) error {
	refusal, ok := fault.As(err)
	switch {
	case err == nil:
		c.verdicts = append(c.verdicts, verdict{source: source, outcome: lifecycle.VerdictAllowed, reasons: c.hints(source)})
	case ok && refusal.Code != fault.Internal:
		c.verdicts = append(c.verdicts, verdict{source: source, outcome: lifecycle.VerdictRefused, refusal: refusal})
	default:
		return err
	}
	return nil
}

// hints is what a plan says though nothing is refused: that a reason will be asked for.
func (c *Change) hints(source lifecycle.VerdictSource) []fault.Reason {
	if source != lifecycle.VerdictState || (!c.Force && !c.needsReason()) {
		return nil
	}
	return []fault.Reason{{Code: fault.Required, Message: "a reason must be given", Path: "input.reason"}}
}

func (c *Change) unasked(sources ...lifecycle.VerdictSource) {
	for _, source := range sources {
		c.verdicts = append(c.verdicts, verdict{source: source, outcome: lifecycle.VerdictUnknown, reasons: []fault.Reason{
			{Code: fault.FailedPrecondition, Message: "was not asked, since the state refuses the change"}}})
	}
}

// refused is the first refusal; nil when there is none.
func (c *Change) refused() *fault.Fault {
	for _, v := range c.verdicts {
		if v.outcome == lifecycle.VerdictRefused {
			return v.refusal
		}
	}
	return nil
}

// quota counts what the change adds against the project's entitlement to the app and its quota.
func (c *Change) quota(ctx context.Context, t *tx.Tx) error {
	if err := c.entitled(); err != nil {
		return err
	}
	if c.Kind == lifecycle.MembersAdd {
		if err := capacity.Members(ctx, t, c.Project, c.Count, "input.count"); err != nil {
			return err
		}
	}
	if len(c.created) == 0 {
		return nil
	}
	return capacity.GPUs(ctx, t, c.Project, "input.intent")
}

// hear adds the adapter's word; nil when it was not asked, since the state refuses the change. An
// unsafe verdict refuses the change unless force was chosen.
func (c *Change) hear(said *adapter.PlanAnswer) {
	if said == nil {
		c.unasked(lifecycle.VerdictAdapter)
		return
	}
	v := verdict{source: lifecycle.VerdictAdapter, outcome: lifecycle.VerdictUnknown, reasons: reasonsOf(said)}
	switch {
	case said.Verdict == adapter.VerdictSafe, said.Verdict == adapter.VerdictUnsafe && c.Force:
		v.outcome = lifecycle.VerdictAllowed
	case said.Verdict == adapter.VerdictUnsafe:
		v.outcome = lifecycle.VerdictRefused
		v.refusal = fault.New(fault.AdapterRejected, "the adapter says that this is not safe: %s", said.Message).With(v.reasons...)
	}
	c.verdicts = append(c.verdicts, v)
}

func reasonsOf(said *adapter.PlanAnswer) []fault.Reason {
	var reasons []fault.Reason
	for _, reason := range said.Reasons[:min(len(said.Reasons), fault.MaxReasons)] {
		reasons = append(reasons, fault.Reason{Code: fault.Code(reason.Code), Message: reason.Message, Path: reason.Path})
	}
	return reasons
}
