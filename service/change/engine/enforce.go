package engine

import (
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/change/verdict"
	"github.com/gpuaas/app-platform/service/kit/tariff"
)

// enforce refuses what is not as the plan found it, then what a rule refuses.
func enforce(v *verdict.Verdicts, said *answers) error {
	if v.Asked.PlanHash != "" {
		v.ApplyAdapterAnswer(said.now)
		hash, err := hashOf(v, said)
		if err != nil {
			return err
		}
		if hash != v.Asked.PlanHash {
			return stale(hash, v.Asked.PlanHash)
		}
	}
	if refusal := v.Refused(); refusal != nil {
		return refusal
	}
	if refusal := tooDear(v); refusal != nil {
		return refusal
	}
	if refusal := unseen(v); refusal != nil {
		return refusal
	}
	if v.NeedsReason() && v.Asked.Reason == "" {
		return change.ReasonMissing("a " + v.Rule.Noun + " needs a reason: " + v.Rule.Reason)
	}
	return nil
}

// stale refuses a plan's hash: what was planned is another request, or something has moved.
func stale(hash, planned string) error {
	message := "what the plan was computed from has changed: plan again"
	if len(planned) == len(hash) && planned[:requestDigits] != hash[:requestDigits] {
		message = "the plan is for another request: plan again with the same target, force, deadline, outcome at the " +
			"deadline and capacity as the change"
	}
	return fault.New(fault.PlanStale, "%s", message).At("input.planHash")
}

// tooDear refuses capacity that costs more than the request may: LIMIT_EXCEEDED. Capacity without a price has no known
// cost, and is refused too.
func tooDear(v *verdict.Verdicts) error {
	if v.HourlyLimitMicros == nil || len(v.Created) == 0 {
		return nil
	}
	var cost money.Decimal
	for _, line := range v.Cost.Capacity {
		if line.Effect != tariff.Rented {
			continue
		}
		if line.Hourly == nil {
			return fault.New(fault.LimitExceeded,
				"capacity of SKU %q has no price, and this change may cost at most %d millionths an hour",
				line.SKU, *v.HourlyLimitMicros)
		}
		cost = cost.Add(line.Hourly.Amount)
	}
	if cost.Cmp(money.Shift(int64(*v.HourlyLimitMicros), microPlaces)) > 0 {
		return fault.New(fault.LimitExceeded,
			"its capacity costs %s an hour, and this change may cost at most %d millionths", cost, *v.HourlyLimitMicros)
	}
	return nil
}

// microPlaces are the places of an amount in millionths.
const microPlaces = 6

// unseen refuses what may disturb other projects without a plan: to take something away from a shared control plane
// that others are attached to, the caller needs its plan, which names them.
func unseen(v *verdict.Verdicts) error {
	if len(v.Attached) == 0 || v.Asked.PlanHash != "" || !v.Rule.Disturbs {
		return nil
	}
	message := fmt.Sprintf("%d other projects use this control plane: plan the %s first and pass the plan's hash",
		len(v.Attached), v.Rule.Noun)
	return fault.New(fault.FailedPrecondition, "%s", message).
		With(fault.Reason{Code: fault.Required, Message: message, Path: "input.planHash"})
}
